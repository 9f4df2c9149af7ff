import GRDB
import NIOPosix
