package controller_test

import (
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The manager names what it accepts in a package with the lenient policy, in an event of the revision.
func TestEventNamesWhatTheLenientPolicyAccepts(t *testing.T) {
	s := newEnv(t)
	r := newRegistry(t)
	ref, _ := r.push(t, "acme/lenient:v1", provider(
		"lenient",
		strings.Replace(crd("lenient.test", "Thing", "one"), "scope: Cluster", "scope: Namespaced\n  scope: Cluster", 1),
	))
	s.start(t)
	p := env.NewProvider("lenient", ref)
	p.Annotations = map[string]string{revision.AnnotationContentPolicy: "Lenient"}
	s.CreateTemporary(t, p)
	s.WaitHealthy(t, p)
	eventually(t, "an event names the duplicate key", func() bool {
		var events eventsv1.EventList
		if err := s.Client.List(t.Context(), &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Reason == "LenientContent" && e.Regarding.Name == p.Status.CurrentRevision &&
				strings.Contains(e.Note, "DuplicateKey: ") && strings.Contains(e.Note, "things.lenient.test") {
				return true
			}
		}
		return false
	})
	remove(t, s, p)
}
