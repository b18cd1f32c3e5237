package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// warn adds warnings.
func (p *Plan) warn(all ...string) { p.Warnings = append(p.Warnings, all...) }

// warnOfSignatures names the requirements that this client cannot verify.
func (p *Plan) warnOfSignatures(required []imageconfig.Verification, signers []signature.Verdict) {
	for _, r := range required {
		if !slices.ContainsFunc(signers, func(v signature.Verdict) bool { return v.Config == r.Config }) {
			p.warn(fmt.Sprintf(
				"The signature that the ImageConfig %s requires is not verified here, because you may not read its Secrets: the manager verifies it.",
				r.Config,
			))
		}
	}
}

// UnusualWarnings returns the warnings that an operation prints if it does not show the plan: those that do not
// describe its usual course.
func (p *Plan) UnusualWarnings() []string {
	return slices.DeleteFunc(slices.Clone(p.Warnings), func(text string) bool { return slices.Contains(p.usual, text) })
}

// notes returns warnings about the state of a package and its revisions.
func notes(p v1.Package, t revision.Transition, out *Plan) []string {
	var all []string
	if p.GetDeletionTimestamp() != nil {
		all = append(all, "The package is being deleted, so none of these changes are made.")
	}
	if v1.IsPaused(p) {
		all = append(
			all, fmt.Sprintf("The package is paused: nothing happens until the annotation %s is removed.", v1.AnnotationPaused),
		)
	}
	if v1.IsPaused(t.Current) {
		all = append(all, fmt.Sprintf(
			"The revision %s is paused: its objects stay as they are until the annotation %s is removed.", t.Current.GetName(),
			v1.AnnotationPaused,
		))
	}
	if out.Adopts {
		all = append(
			all,
			"The package was installed as a dependency. It becomes explicitly installed, and stays when no package requires it any more.",
		)
	}
	policy := revision.PolicyOf(p)
	switch {
	case t.Activate == t.Current.GetName():
	case t.Current.GetName() == policy.Refused:
		all = append(all,
			fmt.Sprintf("The package was rolled back from the revision %s to %s: %s. Repeat the update to try again.",
				policy.Refused, policy.Back, strings.TrimSuffix(p.PackageStatus().Rollback.Message, ".")))
	default:
		all = append(all, fmt.Sprintf(
			"The revisionActivationPolicy is Manual: the revision %s waits until a user sets its spec.desiredState to Active.",
			t.Current.GetName(),
		))
	}
	if ready := p.GetCondition(v1.TypeReady); string(ready.Reason) == apply.ErrDenied.Name &&
		ready.ObservedGeneration == p.GetGeneration() {
		all = append(all, "The last attempt failed: "+ready.Message)
	}
	if waits := out.unsatisfied(); len(waits) > 0 {
		all = append(all, "Objects are changed only when these are installed: "+strings.Join(waits, ", ")+".")
	}
	for _, d := range out.Dependencies {
		if out.lacksKind(d) {
			all = append(
				all, fmt.Sprintf("Objects are changed only when %s provides %s. %s", d.Package, d.CRD, state.SelectAgain),
			)
		}
	}
	if coming := out.coming(); len(coming) > 0 && !out.WaitsForDependencies() {
		out.usual = append(out.usual, "Objects are changed when these have arrived: "+strings.Join(coming, ", ")+".")
	}
	if slices.ContainsFunc(out.Objects.Changes, func(c plan.Change) bool {
		return c.Action == plan.Create && plan.IsWebhookConfiguration(c.Ref)
	}) {
		out.usual = append(out.usual, "Webhook configurations are created once the runtime of the package serves them.")
	}
	return append(all, out.usual...)
}

// warnOfStatus adds a warning about a version that was yanked, retracted or deprecated. A status that cannot be read in
// time adds none.
func (pl *planning) warnOfStatus(ctx context.Context, p v1.Package, res state.Resolution, out *Plan) {
	if pl.Registry == nil || res.LookupError != nil || !revision.MayPull(p.PackageSpec().PackagePullPolicy) {
		return
	}
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
	if err != nil || ref.Tag == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tagTimeout)
	defer cancel()
	status, err := pl.statusOf(ctx, p, ref.WithDigest(res.Digest))
	if err == nil && status != nil {
		out.warn(fmt.Sprintf("%s %s is %s.", ref.Name(), ref.Tag, resolver.Describe(*status)))
	}
}

// statusOf returns the status of a version, and nil if it has none.
func (pl *planning) statusOf(ctx context.Context, p v1.Package, of oci.Reference) (*catalog.Status, error) {
	registry := graph.New(nil, nil).Resolver(pl.Registry, pl.finder(), p).Registry
	repository := of
	repository.Tag, repository.Digest = "", oci.Digest{}
	list, err := registry.Versions(ctx, repository)
	if err != nil {
		return nil, err
	}
	return resolver.StatusOf(ctx, registry, of, list.Tags)
}

// maxConcerns limits the objects in a warning about concerns.
const maxConcerns = 3

// concerns returns a warning for each kind of concern about the objects of a package that changes create or update.
func concerns(pkg *xpkg.Package, changes []plan.Change) []string {
	written := map[[2]string]bool{}
	for _, c := range changes {
		if !c.MetadataOnly && (c.Action == plan.Create || c.Action == plan.Update) {
			written[[2]string{c.Ref.Kind, c.Ref.Name}] = true
		}
	}
	var objects []xpkg.Object
	for _, o := range pkg.Objects {
		if written[[2]string{o.GVK.Kind, o.Name}] {
			objects = append(objects, o)
		}
	}
	var codes []string
	texts := map[string][]string{}
	for _, f := range check.Concerns(objects) {
		if texts[f.Code.Name] == nil {
			codes = append(codes, f.Code.Name)
		}
		texts[f.Code.Name] = append(texts[f.Code.Name], fmt.Sprintf("%s %s: %s", f.Kind, f.Name, f.Text()))
	}
	var out []string
	for _, code := range codes {
		out = append(out, code+": "+wording.Few(texts[code], maxConcerns, "; ")+".")
	}
	return out
}
