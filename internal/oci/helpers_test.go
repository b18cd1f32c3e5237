package oci

import (
	"io"
	"log"
	"math/rand/v2"
)

// quiet takes what test servers log about clients that go away.
var quiet = log.New(io.Discard, "", 0)

// noise does not compress, and is the same in every run.
func noise(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	data := make([]byte, n)
	_, _ = r.Read(data)
	return data
}
