package inventory

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	widgets = schema.GroupResource{Group: "test.example.org", Resource: "widgets"}
	gadgets = schema.GroupResource{Group: "test.example.org", Resource: "gadgets"}
	pods    = schema.GroupResource{Resource: "pods"}
)

func define(i *Inventory, r schema.GroupResource) { i.Put(definitions + r.String()) }

func changed(i *Inventory) bool {
	select {
	case <-i.Changed():
		return true
	default:
		return false
	}
}

func TestLifeOfAResource(t *testing.T) {
	i := New()
	if i.Empty(widgets) {
		t.Error("a resource that is not defined here may have objects elsewhere")
	}
	define(i, widgets)
	define(i, gadgets)
	if !i.Empty(widgets) || changed(i) {
		t.Error("a new resource is empty, and no reason to look")
	}
	i.Put("/registry/test.example.org/widgets/default/a")
	if i.Empty(widgets) || !changed(i) || len(i.Populated()) != 1 {
		t.Error("the first object was not noticed")
	}
	i.Put("/registry/test.example.org/widgets/default/b")
	define(i, widgets)
	if i.Empty(widgets) || changed(i) {
		t.Error("the second object, or a change of the definition, is no news")
	}
	i.Delete("/registry/test.example.org/widgets/default/a")
	i.Delete("/registry/test.example.org/widgets/default/b")
	if i.Empty(widgets) {
		t.Error("a resource that had objects must stay in sight")
	}
	if !i.Empty(gadgets) {
		t.Error("another resource changed")
	}
	i.Delete(definitions + widgets.String())
	if i.Empty(widgets) || len(i.Populated()) != 0 {
		t.Error("a definition that is gone leaves nothing")
	}
	define(i, widgets)
	if !i.Empty(widgets) {
		t.Error("a definition that comes back begins empty")
	}
}

func TestOtherKeys(t *testing.T) {
	i := New()
	define(i, widgets)
	for _, key := range []string{
		"", "/", "/registry", "/registry/", "/registry/pods/default/a", "/registry/ranges/serviceips",
		"/registry/test.example.org/widgets", "/elsewhere/test.example.org/widgets/a", "compact_rev_key",
		"/registry/test.example.org/gadgets/a",
	} {
		i.Put(key)
		i.Delete(key)
	}
	if !i.Empty(widgets) || i.Empty(pods) || changed(i) {
		t.Error("a key of something else was taken for an object of a custom resource")
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("/registry/test.example.org/widgets/default/a")
	f.Add(definitions)
	f.Add(definitions + "widgets")
	f.Add("////")
	f.Fuzz(func(t *testing.T, key string) {
		i := New()
		i.Put(key)
		i.Delete(key)
		if len(i.Populated()) != 0 {
			t.Errorf("%q created a resource without a definition", key)
		}
	})
}
