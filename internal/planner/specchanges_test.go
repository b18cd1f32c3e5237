package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpecChanges(t *testing.T) {
	p := whole(t)
	p.Operation = Update
	p.Preconditions.Spec = []byte(`{"package":"a:v1","packagePullPolicy":"Always","revisionHistoryLimit":1,"runtimeConfigRef":{"name":"default"}}`)
	p.Package.Object = []byte(`{"spec":{"package":"a:v2","packagePullPolicy":"Always","runtimeConfigRef":{"name":"large"},"skipDependencyResolution":true}}`)
	want := []SpecChange{
		{"revisionHistoryLimit", "1", "absent"}, {"runtimeConfigRef.name", "default", "large"}, {"skipDependencyResolution", "absent", "true"},
	}
	if diff := cmp.Diff(want, p.SpecChanges()); diff != "" {
		t.Errorf("changes of the spec (-want +got):\n%s", diff)
	}
	p.Operation = Install
	if got := p.SpecChanges(); got != nil {
		t.Errorf("an install changes %v", got)
	}
}
