import Bytes
import COpenSSL

/// A cipher with its key, for decryption. One object serves a direction of a connection for as long as its key holds.
@safe final class Cipher {
  /// Safe because this object creates and owns it, and `deinit` frees it.
  private let context: OpaquePointer

  /// `nil` when OpenSSL does not have the cipher, or the key's length is wrong.
  ///
  /// - Parameters:
  ///   - name: OpenSSL's, as "AES-128-GCM".
  ///   - tagLength: of CCM, which needs it before the key. 0 for others.
  init?(_ name: String, key: [UInt8], tagLength: Int = 0, isCCM: Bool = false) {
    guard let cipher = unsafe OpenSSL.fetchCipher(name) else { return nil }
    defer { unsafe EVP_CIPHER_free(cipher) }
    guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
    unsafe self.context = context
    guard unsafe EVP_DecryptInit_ex(context, cipher, nil, nil, nil) == 1 else { return nil }
    if isCCM {
      guard unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 12, nil) == 1,
        unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), nil) == 1
      else { return nil }
    }
    let keyLength = Int(unsafe EVP_CIPHER_CTX_get_key_length(context))
    guard unsafe keyLength == key.count || EVP_CIPHER_CTX_set_key_length(context, Int32(key.count)) == 1,
      unsafe EVP_DecryptInit_ex(context, nil, nil, key, nil) == 1
    else {
      ERR_clear_error()
      return nil
    }
    // Said to an AEAD it would be said again with every record, through a search by name.
    if unsafe apnscope_EVP_CIPHER_CTX_get_mode(context) == EVP_CIPH_CBC_MODE {
      unsafe EVP_CIPHER_CTX_set_padding(context, 0)
    }
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  /// Opens an AEAD record; `output` must have room for all bytes before the tag.
  ///
  /// - Returns: the plaintext's length, `nil` when the tag does not verify.
  func open(
    _ sealed: RawSpan, tagLength: Int, nonce: RawSpan, associatedData: RawSpan, isCCM: Bool, into output: inout [UInt8]
  ) -> Int? {
    let length = sealed.byteCount - tagLength
    guard length >= 0, length <= output.count else { return nil }
    var produced: Int32 = 0
    // Safe: OpenSSL reads `sealed`, `nonce` and `associatedData` within the lengths given, and writes `length` bytes.
    let isGenuine = unsafe sealed.withUnsafeBytes { sealed in
      unsafe nonce.withUnsafeBytes { nonce in
        unsafe associatedData.withUnsafeBytes { associated in
          unsafe output.withUnsafeMutableBufferPointer { output in
            let input = unsafe sealed.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let tag = unsafe UnsafeMutableRawPointer(mutating: sealed.baseAddress.map { unsafe $0 + length })
            let header = unsafe associated.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let iv = unsafe nonce.baseAddress?.assumingMemoryBound(to: UInt8.self)
            if isCCM {
              // CCM takes the tag first, then the length, and verifies while it decrypts.
              return unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), tag) == 1
                && EVP_DecryptInit_ex(context, nil, nil, nil, iv) == 1
                && EVP_DecryptUpdate(context, nil, &produced, nil, Int32(length)) == 1
                && (associated.count == 0
                  || EVP_DecryptUpdate(context, nil, &produced, header, Int32(associated.count)) == 1)
                && EVP_DecryptUpdate(context, output.baseAddress, &produced, input, Int32(length)) == 1
            }
            return unsafe EVP_DecryptInit_ex(context, nil, nil, nil, iv) == 1
              && (associated.count == 0
                || EVP_DecryptUpdate(context, nil, &produced, header, Int32(associated.count)) == 1)
              && (length == 0 || EVP_DecryptUpdate(context, output.baseAddress, &produced, input, Int32(length)) == 1)
              && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagLength), tag) == 1
              && EVP_DecryptFinal_ex(context, nil, &produced) == 1
          }
        }
      }
    }
    if !isGenuine { ERR_clear_error() }
    return isGenuine ? length : nil
  }

  /// Decrypts whole blocks, or as much of a key stream as there is input, to the beginning of `output`.
  ///
  /// - Parameter initializationVector: `nil` goes on where the last call ended.
  func decrypt(_ input: RawSpan, initializationVector: RawSpan?, into output: inout [UInt8]) -> Bool {
    guard input.byteCount <= output.count else { return false }
    if let initializationVector {
      let isSet = unsafe initializationVector.withUnsafeBytes {
        unsafe EVP_DecryptInit_ex(context, nil, nil, nil, $0.baseAddress?.assumingMemoryBound(to: UInt8.self)) == 1
      }
      if !isSet {
        ERR_clear_error()
        return false
      }
    }
    if input.byteCount == 0 { return true }
    var produced: Int32 = 0
    // Safe: without padding, the output has as many bytes as the input.
    return unsafe input.withUnsafeBytes { input in
      unsafe output.withUnsafeMutableBufferPointer { output in
        unsafe EVP_DecryptUpdate(
          context, output.baseAddress, &produced, input.baseAddress?.assumingMemoryBound(to: UInt8.self),
          Int32(input.count)) == 1
      }
    } && Int(produced) == input.byteCount
  }
}
