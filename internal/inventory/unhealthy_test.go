package inventory

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// chain returns an inventory in which a requires b, b requires c, and c requires a and an absent package.
func chain() (*Inventory, map[string]*v1.Provider) {
	all, lock := map[string]*v1.Provider{}, &v1beta1.Lock{}
	out := &Inventory{Lock: lock}
	for name, requires := range map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a", "absent"}, "other": nil} {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.Package, p.Status.CurrentRevision = "registry.example.com/"+name+":v1", name+"-1"
		p.SetConditions(metav1.Time{}, v1.Healthy())
		entry := v1beta1.LockPackage{Name: name + "-1", Source: "registry.example.com/" + name, Version: "v1"}
		for _, r := range requires {
			entry.Dependencies = append(entry.Dependencies, v1beta1.Dependency{Package: "registry.example.com/" + r})
		}
		all[name], lock.Packages, out.Packages = p, append(lock.Packages, entry), append(out.Packages, p)
	}
	return out, all
}

func TestUnhealthyDependency(t *testing.T) {
	for unhealthy, want := range map[string]string{"": "", "a": "", "b": "b", "c": "c", "other": ""} {
		i, all := chain()
		if unhealthy != "" {
			all[unhealthy].SetConditions(metav1.Time{}, v1.Unhealthy("it crashes"))
		}
		got := ""
		if d := i.UnhealthyDependency(all["a"]); d != nil {
			got = d.GetName()
		}
		if got != want {
			t.Errorf("with %q unhealthy: got %q, want %q", unhealthy, got, want)
		}
	}
	i, all := chain()
	all["c"].SetConditions(metav1.Time{}, v1.Unhealthy("rolled back"))
	all["c"].Status.Rollback = &v1.Rollback{From: "c-1", To: "c-0"}
	if d := i.UnhealthyDependency(all["a"]); d != nil {
		t.Errorf("a dependency that was rolled back is unhealthy: %s", d.GetName())
	}
}
