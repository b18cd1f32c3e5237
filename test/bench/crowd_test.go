package bench_test

import (
	"fmt"
	"net/http"
	"testing"
)

// crowdedFrom is the number of CRDs from which the manager is measured beside many foreign objects.
const crowdedFrom = 2000

// foreign are the numbers of foreign objects by resource and kind, 10,000 in all.
var foreign = []struct {
	resource, kind string
	count          int
}{{"configmaps", "ConfigMap", 5000}, {"secrets", "Secret", 3000}, {"serviceaccounts", "ServiceAccount", 2000}}

// crowd creates 10,000 objects that belong to no package, and measures a restart of the manager and an upgrade of an
// unrelated package beside them.
func (i *install) crowd(b *testing.B) row {
	b.Helper()
	const namespace = "foreign"
	create := func(path, object string) error {
		return i.bare.call(b.Context(), http.MethodPost, path, metadataOnly, []byte(object), nil)
	}
	if err := create("/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace)); err != nil {
		b.Fatal(err)
	}
	for _, f := range foreign {
		names := make([]string, f.count)
		for k := range names {
			names[k] = fmt.Sprintf("foreign-%d", k)
		}
		if err := each(names, func(name string) error {
			return create("/api/v1/namespaces/"+namespace+"/"+f.resource,
				fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"labels":{"app":"foreign"}}}`, f.kind, name))
		}); err != nil {
			b.Fatal(err)
		}
	}
	r := i.restart(b)
	r.what = "xpkg: the manager is restarted beside 10,000 objects"
	return r
}

// crowdGoals bounds the memory of the idle manager, and its peak during the upgrade of an unrelated package.
func (i *install) crowdGoals(b *testing.B) []goal {
	b.Helper()
	idle := usageOf(b, i.manager.PID()).Resident
	i.upgradeUnrelated(b, 3)
	i.meter().quiet(b)
	peak := usageOf(b, i.manager.PID()).Peak
	return []goal{
		{what: fmt.Sprintf("idle memory at most %d MiB: %d", crowdIdle, idle>>20), met: idle <= crowdIdle<<20},
		{what: fmt.Sprintf("peak memory at most %d MiB: %d", crowdPeak, peak>>20), met: peak <= crowdPeak<<20},
	}
}
