package frontend_test

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/frontend"
)

// The package manager works without an API: it asks the nil API, which reads nothing.
func TestANilAPIHasNoObjects(t *testing.T) {
	var api *frontend.API
	uses, err := api.Uses(t.Context(), nil, nil)
	for _, kind := range []string{"PackageInstall", ""} {
		if o, err := api.Get(t.Context(), nil, frontend.Reference{
			Kind: kind, Namespace: "team", Name: "boats",
		}); err != nil || o != nil {
			t.Errorf("there is the object %v, %v", o, err)
		}
	}
	switch {
	case err != nil || uses.Of("boats"):
		t.Errorf("the uses are %v, %v", uses, err)
	case len(api.All(t.Context(), nil)) > 0 || len(api.GroupVersionKinds()) > 0 || api.KindNamed("packageinstall") != "":
		t.Error("there are objects or kinds")
	}
}
