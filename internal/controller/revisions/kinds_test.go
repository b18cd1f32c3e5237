package revisions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// A runtime waits only if it could run kinds and none of them is active, and if it has never run.
func TestARuntimeAwaitsActivation(t *testing.T) {
	config := activation.Kind{Name: "configs.x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: "Config"}}
	thing := activation.Kind{Name: "things.x.org", GroupKind: schema.GroupKind{Group: "x.org", Kind: "Thing"}, Managed: true}
	for name, c := range map[string]struct {
		needs   activation.Needs
		offered []activation.Kind
		ran     bool
		want    bool
	}{
		"nothing is needed":            {activation.Needs{Safe: true}, []activation.Kind{config, thing}, false, true},
		"it has run":                   {activation.Needs{Safe: true}, []activation.Kind{config, thing}, true, false},
		"a kind is needed":             {activation.Needs{Safe: true, Choice: activation.Choice{Patterns: []string{"things.*"}}}, []activation.Kind{thing}, false, false},
		"no managed resources":         {activation.Needs{Safe: true}, []activation.Kind{config}, false, false},
		"it may need each of its kind": {activation.Needs{}, []activation.Kind{thing}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			rev := &v1.ProviderRevision{}
			if c.ran {
				rev.SetConditions(metav1.Now(), v1.RuntimeActive())
			}
			in := &reconciliation{Set: revision.Set{Revision: rev}, kinds: c.needs.Select(c.offered)}
			if got := awaitsActivation(in); got != c.want {
				t.Errorf("it waits: %t, want %t", got, c.want)
			}
		})
	}
	if awaitsActivation(&reconciliation{Set: revision.Set{Revision: &v1.FunctionRevision{}}}) {
		t.Error("the runtime of a Function waits")
	}
}
