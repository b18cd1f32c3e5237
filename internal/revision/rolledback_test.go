package revision

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

func TestRollbacksAreRecordedOnce(t *testing.T) {
	p := &v1.Provider{}
	for _, from := range []string{"r.example/a:v2.0.0", "r.example/a:v1.1.0", "r.example/a:v2.0.0"} {
		RecordRollback(p, from)
	}
	if got := p.Annotations[AnnotationRolledBackFrom]; got != "r.example/a:v1.1.0,r.example/a:v2.0.0" || len(RolledBackFrom(p)) != 2 {
		t.Errorf("got %q", got)
	}
}
