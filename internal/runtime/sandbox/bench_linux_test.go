package sandbox

import (
	"os"
	"os/exec"
	"testing"
)

// BenchmarkStart measures the start of a runtime through init. The floor is a start of the same
// executable.
func BenchmarkStart(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			// Init fails, because it was started without a supervisor.
			if exec.Command(os.Args[0], InitCommand).Run() == nil {
				b.Fatal("it started something")
			}
		}
	})
	for name, isolation := range isolations {
		b.Run(name, func(b *testing.B) {
			s := newSupervisor(b, func(o *Options) { o.Isolation, o.Log = isolation, nil })
			spec := Spec{Name: "bench", Digest: imageDigest, Args: []string{"sleep"}}
			s.opts.Grace = 1 // It does not listen.
			for b.Loop() {
				if err := s.Ensure(b.Context(), spec); err != nil {
					b.Fatal(err)
				}
				if err := s.Stop(b.Context(), spec.Name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
