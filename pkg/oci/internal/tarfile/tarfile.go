// Package tarfile implements the rules for tar entries that all readers and writers
// share.
package tarfile

import (
	"archive/tar"
	"fmt"
	"io"
	"strings"
	"time"
)

// Names of whiteouts (OCI image specification, "Applying Changesets").
const (
	// WhiteoutPrefix is the prefix of an entry that removes a file of a lower layer.
	WhiteoutPrefix = ".wh."
	// OpaqueWhiteout is the name of an entry that removes all files of lower layers in
	// its directory.
	OpaqueWhiteout = ".wh..wh..opq"
)

// Header returns the header of a regular file: mode 0644, owner 0 and the time of
// the Unix epoch, so that equal content has equal bytes.
func Header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0)}
}

// Irregular returns the kind of an entry that is not a regular file, for example
// "symbolic link", and "" for a regular file. A sparse file is not regular: its content
// in the tar differs from the content of the file.
func Irregular(h *tar.Header) string {
	if IsSparse(h) {
		return "sparse file"
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return ""
	case tar.TypeSymlink:
		return "symbolic link"
	case tar.TypeLink:
		return "hard link"
	case tar.TypeDir:
		return "directory"
	case tar.TypeFifo:
		return "named pipe"
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	}
	return fmt.Sprintf("tar entry of type %q", h.Typeflag)
}

// IsSparse reports whether an entry is a sparse file of the GNU format.
func IsSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// A Counter counts the entries and header bytes of tars.
type Counter struct {
	// Entries is the number of entries, and Headers the number of bytes of their
	// names, link targets and PAX records.
	Entries int
	Headers int64
}

// Add counts an entry.
func (c *Counter) Add(h *tar.Header) {
	c.Entries++
	c.Headers += int64(len(h.Name) + len(h.Linkname))
	for k, v := range h.PAXRecords {
		c.Headers += int64(len(k) + len(v))
	}
}

// blockSize is the size of a tar header in bytes.
const blockSize = 512

// A Sniffer reads from R, and records the first block. Use it to tell a damaged tar from
// content that is not a tar.
type Sniffer struct {
	R io.Reader

	block [blockSize]byte
	n     int
}

// Read implements io.Reader.
func (s *Sniffer) Read(p []byte) (int, error) {
	n, err := s.R.Read(p)
	s.n += copy(s.block[s.n:], p[:n])
	return n, err
}

// IsTar reports whether the first block is a tar header, by its checksum.
func (s *Sniffer) IsTar() bool { return s.n == blockSize && IsHeader(s.block[:]) }

// IsHeader reports whether a block of 512 bytes is a tar header, by its checksum.
func IsHeader(block []byte) bool {
	const from, to = 148, 156 // The field of the checksum, which counts as spaces.
	var want, got int64
	if _, err := fmt.Sscanf(strings.Trim(string(block[from:to]), " \x00"), "%o", &want); err != nil {
		return false
	}
	for i, c := range block {
		if i >= from && i < to {
			c = ' '
		}
		got += int64(c)
	}
	return got == want
}
