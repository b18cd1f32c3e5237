package revision

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// A rollback is recorded once, and until a user selects the version again.
func TestRecordVersion(t *testing.T) {
	const repository = "r.example/a:"
	p := &v1.Provider{}
	p.Spec.Package = repository + "v1.0.0"
	for _, tc := range []struct {
		to        string
		rollsBack bool
		want      string
	}{
		{"v2.0.0", false, ""},
		{"v1.0.0", true, repository + "v2.0.0"},
		{"v1.1.0", false, repository + "v2.0.0"},
		{"v1.0.0", true, repository + "v1.1.0," + repository + "v2.0.0"},
		{"v2.0.0@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", true, repository + "v1.1.0"},
		{"v1.1.0", false, ""},
	} {
		from := p.Spec.Package
		p.Spec.Package = repository + tc.to
		RecordVersion(p, from, tc.rollsBack)
		if got, exists := p.Annotations[AnnotationRolledBackFrom]; got != tc.want || exists != (tc.want != "") {
			t.Errorf("from %s to %s: got %q, want %q", from, tc.to, got, tc.want)
		}
	}
}
