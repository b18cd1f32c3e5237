package crds

import "testing"

// BenchmarkPackages measures the cost of parsing the CRDs at every start of the manager.
func BenchmarkPackages(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Packages(); err != nil {
			b.Fatal(err)
		}
	}
}
