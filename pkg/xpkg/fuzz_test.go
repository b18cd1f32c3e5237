package xpkg

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
)

// hardening: D10
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"a: b\n", "a: &x b\nc: *x\n", "a: 1\na: 2\n", "<<: {a: b}\n", "kind: K\napiVersion: v1\n", "a: !!str 1\n",
	} {
		f.Add([]byte(providerMeta + "---\n" + seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		limits := Limits{StreamBytes: 1 << 16, Depth: 50, Nodes: 1000, AliasNodes: 1000}
		pkg, err := Read(stream, ReadOptions{Limits: limits})
		if err != nil {
			if len(errorsOf(Findings(err))) == 0 {
				t.Fatalf("refused without a finding: %v", err)
			}
			return
		}
		for _, o := range pkg.Objects {
			if text, err := o.JSON(); err != nil || !canonical.Valid(text) {
				t.Fatalf("%s: %s, %v", o.Name, text, err)
			}
		}
	})
}
