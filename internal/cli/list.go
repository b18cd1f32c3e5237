package cli

import (
	"context"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

type listCmd struct {
	clusterFlags
	outputFlag
}

// Run prints the packages that are installed.
func (c *listCmd) Run(env *Env) error {
	cluster, all, err := c.installed(env.Context, loadPackages)
	if err != nil {
		return err
	}
	return c.print(env.Stdout, asList(all.packages), func(w io.Writer) error {
		if len(all.packages) == 0 {
			_, err := io.WriteString(w, "No packages are installed.\n")
			return err
		}
		var rows [][]string
		for _, p := range all.packages {
			rows = append(rows, []string{
				shortName(p), status(p, v1.TypeInstalled), status(p, v1.TypeHealthy), c.runningPackage(env.Context, cluster, p),
				age(p.GetCreationTimestamp().Time, time.Now()), string(reasonOf(p)),
			})
		}
		return writeTable(w, []string{"NAME", "INSTALLED", "HEALTHY", "PACKAGE", "AGE", "INSTALL REASON"}, rows)
	})
}

// runningPackage returns the reference of the content that a package runs. After a rollback
// that is not spec.package, and the failed update is named beside it.
func (*listCmd) runningPackage(ctx context.Context, cluster client.Client, p v1.Package) string {
	asked, back := p.PackageSpec().Package, revision.PolicyOf(p).Back
	if back == "" {
		return asked
	}
	rev := p.NewRevision()
	running := "revision " + back
	// A user may read packages only.
	if cluster.Get(ctx, client.ObjectKey{Name: back}, rev) == nil && rev.RevisionSpec().Image != "" {
		running = rev.RevisionSpec().Image
	}
	return running + " (rolled back: the update to " + asked + " failed)"
}

// asList is a v1 List, as kubectl prints several objects.
func asList(packages []v1.Package) any {
	items := make([]any, len(packages))
	for i, p := range packages {
		items[i] = clean(p)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// clean drops the bookkeeping of the API server that no reader of output wants.
func clean(p v1.Package) v1.Package {
	p.SetManagedFields(nil)
	return p
}

func shortName(p v1.Package) string { return strings.ToLower(p.PackageKind()) + "/" + p.GetName() }

func status(p v1.Package, t v1.ConditionType) string {
	if c := p.GetCondition(t); c.Status != "" {
		return string(c.Status)
	}
	return string(corev1.ConditionUnknown)
}
