package planner

import (
	"context"
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Webhooks are rules of a package's webhooks that cover resources that the package does not
// define.
type Webhooks struct {
	// Outside are all of these rules.
	Outside []string `json:"outside"`
	// Unallowed are the rules without consent. With such rules, no object is changed.
	Unallowed []string `json:"unallowed,omitempty"`
	// Consents reports whether the operation writes the consent.
	Consents bool `json:"consents,omitempty"`
}

// outsideRules returns the rules of a package's webhooks for resources that the package does not define. If
// AllowWebhooks is set, it adds the consent to p.
func (pl *planning) outsideRules(p v1.Package, pkg *xpkg.Package) ([]desired.WebhookRule, error) {
	objects, err := desired.Of(pkg, desired.Options{Package: p.GetName()})
	if err != nil {
		return nil, err
	}
	rules, err := objects.OutsideWebhookRules()
	if err == nil && pl.AllowWebhooks && len(webhooks.Unallowed(rules, p)) > 0 {
		webhooks.Allow(p, rules)
	}
	return rules, err
}

// newWebhooks returns the rules of webhooks of the revision of a package, or nil if there are none.
func newWebhooks(rules []desired.WebhookRule, live, p v1.Package, rev v1.PackageRevision) *Webhooks {
	if len(rules) == 0 {
		return nil
	}
	return &Webhooks{
		Outside: webhooks.Strings(rules), Unallowed: webhooks.Strings(webhooks.Unallowed(rules, p, rev)),
		Consents: live != nil &&
			live.GetAnnotations()[webhooks.AnnotationAllowed] != p.GetAnnotations()[webhooks.AnnotationAllowed],
	}
}

// warnOfConsents adds a warning if the manager does not accept the consents of a package. A user who may not read the
// fence of consents gets none.
func (pl *planning) warnOfConsents(ctx context.Context, p v1.Package, out *Plan) error {
	if !consent.IsGiven(p) {
		return nil
	}
	gap, err := consent.Check(ctx, pl.Reader)
	if err == nil && gap != (consent.Gap{}) && !gap.IsUnknown {
		out.warn(gap.Advise(p))
	}
	return err
}

// outside returns the rules of webhooks for resources that the package does not define.
func (p *Plan) outside() []string {
	if p.Webhooks == nil {
		return nil
	}
	return p.Webhooks.Outside
}

// commandToAllow returns the command that applies the plan and allows its webhooks.
func (p *Plan) commandToAllow() string { return p.command() + " --allow-webhooks" }

// command returns the command that installs or updates the package to the planned version.
func (p *Plan) command() string {
	if p.Operation == Install {
		return fmt.Sprintf("xpkg install %s %s %s", strings.ToLower(p.Package.Kind), p.Package.To.Reference, p.Package.Name)
	}
	return fmt.Sprintf("xpkg update %s %s", p.Package.Short(), p.Package.To.Reference)
}
