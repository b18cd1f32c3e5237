package oci_test

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func ExampleParseReference() {
	ref, err := oci.ParseReference("Registry.Example.ORG/acme/provider:v1.2.0", oci.ParseOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ref.Name())
	fmt.Println(ref.Tag)
	// Output:
	// registry.example.org/acme/provider
	// v1.2.0
}

func ExampleDigestOf() {
	fmt.Println(oci.DigestOf([]byte("hello\n")))
	// Output: sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
}
