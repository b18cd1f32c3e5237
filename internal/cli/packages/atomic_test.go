package packages

import (
	"maps"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// An undone update leaves no consents of its command, and the package is a dependency again if it was one. Other labels and annotations stay.
func TestUndoneUpdatesReturnConsents(t *testing.T) {
	consents := func(value string) map[string]string {
		return map[string]string{
			webhooks.AnnotationAllowed: value, revision.AnnotationAdopt: value, graph.AnnotationKindProviders: value,
			revision.AnnotationRolledBackFrom: value, graph.AnnotationRequiredBy: value,
		}
	}
	dependency := map[string]string{graph.LabelAutoInstalled: "true"}
	for name, tc := range map[string]struct{ labels, annotations map[string]string }{
		"none": {}, "others": {dependency, consents("first")},
	} {
		t.Run(name, func(t *testing.T) {
			before := v1.NewPackage(v1.ProviderKind)
			before.SetLabels(tc.labels)
			before.SetAnnotations(tc.annotations)
			live := v1.NewPackage(v1.ProviderKind)
			live.SetLabels(map[string]string{"team": "a"})
			live.SetAnnotations(consents("second"))
			revision.SetUndo(live, "mark")
			newChange(before, live).restore(live)
			labels := map[string]string{"team": "a"}
			maps.Copy(labels, tc.labels)
			if got := live.GetLabels(); !maps.Equal(got, labels) {
				t.Errorf("got the labels %v, want %v", got, labels)
			}
			if got := live.GetAnnotations(); !maps.Equal(got, tc.annotations) {
				t.Errorf("got the annotations %v, want %v", got, tc.annotations)
			}
		})
	}
}

// An undone update leaves the consents, and the mark of a dependency, that another client has changed or removed since: a removal is not
// visible in the managed fields.
func TestUndoneUpdatesLeaveConsentsOfOthers(t *testing.T) {
	at := func(labels, annotations map[string]string) v1.Package {
		p := v1.NewPackage(v1.ProviderKind)
		p.SetLabels(labels)
		p.SetAnnotations(annotations)
		return p
	}
	dependency := map[string]string{graph.LabelAutoInstalled: "true"}
	before := at(dependency, map[string]string{webhooks.AnnotationAllowed: "first", revision.AnnotationAdopt: "first"})
	written := newChange(before, at(dependency, map[string]string{webhooks.AnnotationAllowed: "first", revision.AnnotationAdopt: "second"}))
	live := at(nil, map[string]string{revision.AnnotationAdopt: "third"})
	written.restore(live)
	if want := map[string]string{revision.AnnotationAdopt: "third"}; len(live.GetLabels()) > 0 || !maps.Equal(live.GetAnnotations(), want) {
		t.Errorf("got %v, %v; want %v", live.GetLabels(), live.GetAnnotations(), want)
	}
}
