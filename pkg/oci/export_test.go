package oci

import (
	"bytes"
	"io"
)

// Identifiers for the tests of this package.
const (
	FreeOutput = freeOutput
	MaxLabel   = maxLabel
)

var IsLowerAlnum = isLowerAlnum

// MaxOutput returns how many bytes a layer of a size may unpack to.
func MaxOutput(size int64) int64 {
	return newOutputLimit(Descriptor{Size: size}, DefaultLimits()).bytes
}

// ScanBytes returns the file package.yaml of a layer.
func ScanBytes(mediaType MediaType, data []byte) (stream []byte, found bool, err error) {
	limits := DefaultLimits()
	d := Descriptor{MediaType: mediaType, Digest: DigestOf(data), Size: int64(len(data))}
	r, err := OpenLayer(bytes.NewReader(data), d, limits)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	scan, err := scanLayer(r, newOutputLimit(d, limits), limits, func(size int64, r io.Reader) error {
		stream = make([]byte, size)
		_, err := io.ReadFull(r, stream)
		return err
	})
	return stream, scan.found, err
}
