package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpecChanges(t *testing.T) {
	p := whole(t)
	p.Operation = Update
	p.Preconditions.Spec = []byte(
		`{"package":"a:v1","packagePullPolicy":"Always","revisionHistoryLimit":1,"runtimeConfigRef":{"name":"default"}}`,
	)
	p.Package.Object = []byte(
		`{"spec":{"package":"a:v2","packagePullPolicy":"Always","runtimeConfigRef":{"name":"large"},"skipDependencyResolution":true}}`,
	)
	want := []SpecChange{
		{"revisionHistoryLimit", "1", "absent"}, {"runtimeConfigRef.name", "default", "large"},
		{"skipDependencyResolution", "absent", "true"},
	}
	if diff := cmp.Diff(want, p.SpecChanges()); diff != "" {
		t.Errorf("changes of the spec (-want +got):\n%s", diff)
	}
	p.Operation = Install
	if got := p.SpecChanges(); got != nil {
		t.Errorf("an install changes %v", got)
	}
}

// Changes inside of lists of mappings are named by their paths.
func TestChangedFieldsInsideOfLists(t *testing.T) {
	list := func(image string) map[string]any {
		return map[string]any{
			"containers": []any{map[string]any{"name": "a", "image": image}, map[string]any{"name": "b"}}, "args": []any{"x"},
		}
	}
	want := []SpecChange{{"containers[0].image", "one", "two"}}
	if diff := cmp.Diff(want, changedFields("", list("one"), list("two"))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	longer := list("one")
	longer["containers"] = append(longer["containers"].([]any), map[string]any{"name": "c"})
	if got := changedFields("", list("one"), longer); len(got) != 1 || got[0].Field != "containers" {
		t.Errorf("a longer list: %v", got)
	}
}
