import Glibc

/// A folder for several documents, of which all or none are written.
package struct OutputFolder {
  /// The path, with a slash at its end.
  package let path: String

  /// Creates the folder, and its missing parents.
  package init(_ path: String) throws(FileFailure) {
    self.path = path.hasSuffix("/") ? path : path + "/"
    for (index, letter) in self.path.enumerated() where letter == "/" && index > 0 {
      let folder = String(self.path.prefix(index))
      guard unsafe mkdir(folder, 0o755) != 0, errno != EEXIST else { continue }
      throw FileFailure(.writeFailed, folder, code: errno)
    }
  }

  /// The folder itself or, if it does not exist yet, its nearest existing parent; with a slash at its end.
  package static func existing(_ path: String) -> String {
    var folder = path[...]
    while !folder.isEmpty {
      while folder.count > 1, folder.last == "/" { folder.removeLast() }
      if Paths.isDirectory(String(folder)) { return folder == "/" ? "/" : folder + "/" }
      guard folder != "/" else { break }
      folder = folder[..<(folder.lastIndex(of: "/").map { folder.index(after: $0) } ?? folder.startIndex)]
    }
    return path.hasPrefix("/") ? "/" : "./"
  }

  /// Writes the documents. Existing ones stay unchanged if there is no space for all of them.
  package func write(_ documents: [(name: String, bytes: [UInt8])]) throws(FileFailure) {
    var prepared: [WholeDocument] = []
    for (name, bytes) in documents {
      let document = try WholeDocument(path + name)
      document.prepare(bytes)
      try document.check()
      prepared.append(document)
    }
    for document in prepared {
      document.commit()
      try document.check()
    }
  }

  /// Throws when a file of the folder cannot be written; changes nothing.
  package func check(_ name: String) throws(FileFailure) { _ = try WholeDocument(path + name) }
}
