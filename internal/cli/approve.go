package cli

import (
	"encoding/json"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

type approveCmd struct {
	Name string `arg:"" help:"Package whose new version waits, as NAME or KIND/NAME."`
	consentFlag
	clusterFlags
	outputFlag
}

// approval is what somebody approves.
type approval struct {
	Kind        string              `json:"kind"`
	Package     string              `json:"package"`
	Revision    string              `json:"revision"`
	Permissions []rbacv1.PolicyRule `json:"permissions"`
	Fingerprint string              `json:"fingerprint"`
}

// Run approves the rights that a new version of a package asks for: exactly those that
// it shows, and no others that it may ask for meanwhile.
func (c *approveCmd) Run(env *Env) error {
	cluster, all, err := c.installed(env.Context, load)
	if err != nil {
		return err
	}
	p, err := all.find(c.Name)
	if err != nil {
		return err
	}
	rev := p.NewRevision()
	if err := cluster.Get(env.Context, client.ObjectKey{Name: p.PackageStatus().CurrentRevision}, rev); client.IgnoreNotFound(err) != nil {
		return classify(err, "read the revision of %s", shortName(p))
	}
	added := rev.RevisionStatus().UnapprovedPermissions
	if len(added) == 0 || permission.Approved(rev, added) {
		return c.print(env.Stdout, approval{Kind: p.PackageKind(), Package: p.GetName(), Revision: rev.GetName()}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s waits for no approval\n", shortName(p))
			return err
		})
	}
	out := approval{p.PackageKind(), p.GetName(), rev.GetName(), added, rights.Fingerprint(added)}
	fmt.Fprintf(env.Stderr, "revision %s asks for more than the one before it:\n", safe(rev.GetName()))
	for _, rule := range added {
		fmt.Fprintf(env.Stderr, "  + %s\n", safe(rights.Describe(rule)))
	}
	if err := c.consent(env, "approve this for "+shortName(p)); err != nil {
		return err
	}
	if err := approve(env, cluster, rev, out.Fingerprint); err != nil {
		return err
	}
	return c.print(env.Stdout, out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s approved (%s)\n", shortName(p), rev.GetName())
		return err
	})
}

// approve writes the approval down on the revision.
func approve(env *Env, cluster client.Client, rev v1.PackageRevision, fingerprint string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": rev.GetUID(), "annotations": map[string]string{permission.AnnotationApproved: fingerprint},
	}})
	if err != nil {
		return err
	}
	err = cluster.Patch(env.Context, rev, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.FieldManager))
	return classify(err, "approve %s", rev.GetName())
}
