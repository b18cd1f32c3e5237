package crds

import "testing"

// BenchmarkPackages is what every start of the package manager pays for reading
// its own definitions.
func BenchmarkPackages(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Packages(); err != nil {
			b.Fatal(err)
		}
	}
}
