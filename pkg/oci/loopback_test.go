package oci_test

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost":              true,
		"localhost:5000":         true,
		"registry.localhost":     true,
		"127.0.0.1":              true,
		"127.1.2.3:5000":         true,
		"::1":                    true,
		"[::1]":                  true,
		"[::1]:5000":             true,
		"[::ffff:127.0.0.1]:443": true,
		"":                       false,
		":5000":                  false,
		"localhost.example.org":  false,
		"notlocalhost":           false,
		"128.0.0.1":              false,
		"127.0.0.1.example.org":  false,
		"[2001:db8::1]:5000":     false,
		"0.0.0.0:5000":           false,
	} {
		if got := oci.IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v", host, got)
		}
	}
}
