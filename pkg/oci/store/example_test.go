package store_test

import (
	"context"
	"fmt"
	"os"

	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Content is stored under its digest, and verified with every read.
func ExampleStore() {
	if err := storeAndRead(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stored: true
	// hello
}

func storeAndRead(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := store.Open(dir+"/store", store.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	digest, err := s.PutBytes(ctx, []byte("hello\n"))
	if err != nil {
		return err
	}
	fmt.Println("stored:", s.Has(digest))
	data, err := s.Get(ctx, digest, 1024)
	if err != nil {
		return err
	}
	fmt.Print(string(data))
	return nil
}
