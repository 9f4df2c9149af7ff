import Glibc

/// A folder that documents are written into, all of them or none.
package struct OutputFolder {
  /// With a slash at its end.
  package let path: String

  /// Makes the folder, and those that it is in.
  package init(_ path: String) throws(FileFailure) {
    self.path = path.hasSuffix("/") ? path : path + "/"
    for (index, letter) in self.path.enumerated() where letter == "/" && index > 0 {
      let folder = String(self.path.prefix(index))
      guard unsafe mkdir(folder, 0o755) != 0, errno != EEXIST else { continue }
      throw FileFailure(.writeFailed, folder, code: errno)
    }
  }

  /// Of a folder that may have to be made first: itself, or the nearest that it will be in and that there is; with a
  /// slash at its end.
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

  /// Writes the documents. Existing ones stay unchanged unless there is space for all of them.
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
