package packages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/inventory"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// ApproveCmd implements `xpkg approve`.
type ApproveCmd struct {
	Name inventory.Name `arg:"" complete:"package" help:"Package with a pending approval, as NAME, KIND/NAME or KIND NAME."`
	terminal.ConsentFlag
	connection.ClusterFlags
	terminal.OutputFlag
}

// approval is the output of the command.
type approval struct {
	Kind        string              `json:"kind"`
	Package     string              `json:"package"`
	Revision    string              `json:"revision"`
	Permissions []rbacv1.PolicyRule `json:"permissions"`
	Fingerprint string              `json:"fingerprint"`
	Webhooks    []string            `json:"webhooks,omitempty"`
	Objects     []string            `json:"adoptedObjects,omitempty"`
}

// Run approves the permissions, the webhooks and the adoption of objects for which a version of a package
// waits. It approves exactly the changes that it shows.
func (c *ApproveCmd) Run(env *terminal.Env) error {
	cluster, all, err := inventory.Read(env.Context, c.ClusterFlags, inventory.Load)
	if err != nil {
		return err
	}
	p, err := all.Find(c.Name)
	if err != nil {
		return err
	}
	rev := p.NewRevision()
	if err := cluster.Get(env.Context, client.ObjectKey{Name: p.PackageStatus().CurrentRevision}, rev); client.IgnoreNotFound(err) != nil {
		return connection.Classify(err, "read the revision of %s", inventory.ShortName(p))
	}
	added, hooks := rev.RevisionStatus().UnapprovedPermissions, unallowedWebhooks(p, rev)
	if permission.Approved(rev, added) {
		added = nil
	}
	out := approval{Kind: p.PackageKind(), Package: p.GetName(), Revision: rev.GetName()}
	adopt := unadoptedObjects(p, rev)
	if len(added)+len(hooks)+len(adopt) == 0 {
		return c.Print(env.Stdout, out, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s has no pending approval\n", inventory.ShortName(p))
			return err
		})
	}
	if len(added) > 0 {
		out.Permissions, out.Fingerprint = added, rbac.Fingerprint(added)
		fmt.Fprintf(env.Stderr, "revision %s requests permissions that need approval:\n", terminal.Safe(rev.GetName()))
		for _, rule := range added {
			fmt.Fprintf(env.Stderr, "  + %s\n", terminal.Safe(rbac.DescribeEscalation(rule)))
		}
	}
	if len(hooks) > 0 {
		out.Webhooks = webhooks.Strings(hooks)
		fmt.Fprintf(env.Stderr, "webhooks of revision %s cover resources that the package does not define:\n", terminal.Safe(rev.GetName()))
		for _, rule := range out.Webhooks {
			fmt.Fprintf(env.Stderr, "  + %s\n", terminal.Safe(rule))
		}
	}
	if len(adopt) > 0 {
		out.Objects = adopt
		fmt.Fprintf(env.Stderr, "revision %s would adopt existing objects that belong to no package:\n", terminal.Safe(rev.GetName()))
		for _, name := range adopt {
			fmt.Fprintf(env.Stderr, "  ~ %s\n", terminal.Safe(name))
		}
	}
	if err := c.Consent(env, "approve these changes of "+inventory.ShortName(p)); err != nil {
		return err
	}
	if len(added) > 0 {
		if err := approve(env, cluster, rev, out.Fingerprint); err != nil {
			return err
		}
	}
	if len(hooks) > 0 {
		hooks = append(desired.ParseWebhookRules(p.GetAnnotations()[webhooks.AnnotationAllowed]), hooks...)
		if err := annotate(env, cluster, p, webhooks.AnnotationAllowed, desired.FormatWebhookRules(hooks)); err != nil {
			return err
		}
	}
	if len(adopt) > 0 {
		if err := annotate(env, cluster, p, revision.AnnotationAdopt, revision.FormatAdoptions(append(revision.Adoptions(p), adopt...))); err != nil {
			return err
		}
	}
	return c.Print(env.Stdout, out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s approved (%s)\n", inventory.ShortName(p), rev.GetName())
		return err
	})
}

// unallowedWebhooks returns the webhook rules for which a revision waits, without the rules that the package allows
// now.
func unallowedWebhooks(p v1.Package, rev v1.PackageRevision) []desired.WebhookRule {
	return webhooks.Unallowed(p, desired.ParseWebhookRules(strings.Join(rev.RevisionStatus().UnallowedWebhooks, ";")))
}

// unadoptedObjects returns the objects that a revision waits to adopt, without the objects that the
// package may adopt now.
func unadoptedObjects(p v1.Package, rev v1.PackageRevision) []string {
	return slices.DeleteFunc(slices.Clone(rev.RevisionStatus().ObjectsToAdopt), func(name string) bool {
		return slices.Contains(revision.Adoptions(p), name)
	})
}

// allowedMeanwhile reports whether a failure is a missing consent to webhooks or to the adoption of objects
// that the package now has, so that the manager will continue.
func allowedMeanwhile(ctx context.Context, cluster client.Client, p v1.Package, failure error) bool {
	if !errors.Is(failure, webhooks.ErrNotAllowed) && !errors.Is(failure, apply.ErrNeedsAdoption) {
		return false
	}
	rev := p.NewRevision()
	err := cluster.Get(ctx, client.ObjectKey{Name: p.PackageStatus().CurrentRevision}, rev)
	return err == nil && len(unallowedWebhooks(p, rev)) == 0 && len(unadoptedObjects(p, rev)) == 0
}

// annotate writes a consent of the user to a package.
func annotate(env *terminal.Env, cluster client.Client, p v1.Package, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.GetUID(), "annotations": map[string]string{key: value},
	}})
	if err != nil {
		return err
	}
	kind := p.GetObjectKind().GroupVersionKind()
	err = cluster.Patch(env.Context, p, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.FieldManager))
	p.GetObjectKind().SetGroupVersionKind(kind)
	return connection.Classify(err, "annotate %s", inventory.ShortName(p))
}

// approve records the approval on the revision.
func approve(env *terminal.Env, cluster client.Client, rev v1.PackageRevision, fingerprint string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": rev.GetUID(), "annotations": map[string]string{permission.AnnotationApproved: fingerprint},
	}})
	if err != nil {
		return err
	}
	err = cluster.Patch(env.Context, rev, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.FieldManager))
	return connection.Classify(err, "approve %s", rev.GetName())
}
