package protocol

import (
	"path"
	"strings"
	"testing"
)

// FuzzParseRequest checks that a path that is accepted has only one meaning: its canonical form has the same one.
func FuzzParseRequest(f *testing.F) {
	for _, p := range []string{
		"/v2/", "/v2", "/v2/_catalog", "/v2/a/b/manifests/v1", "/v2/a/blobs/uploads/", "/v2/a/blobs/uploads/1",
		"/v2/a/tags/list", "/v2/a/referrers/sha256:0",
		"/v2/a/../b/tags/list", "/v2/a//b/tags/list", "/v2/a/blobs/uploads/manifests/x", "/v2/a/tags/list/",
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		r, ok := Parse(p)
		if !ok {
			return
		}
		again, ok := Parse(r.Path())
		if !ok || again != r {
			t.Fatalf("%q is %+v, and its canonical path %q is %+v", p, r, r.Path(), again)
		}
		if r.Repository != "" && strings.TrimSuffix(path.Clean(p), "/") != strings.TrimSuffix(r.Path(), "/") {
			t.Fatalf("%q is not canonical, and was understood as %q", p, r.Path())
		}
	})
}
