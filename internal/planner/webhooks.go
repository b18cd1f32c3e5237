package planner

import (
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
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

// webhooks returns the rules of a package's webhooks for resources that the package does not
// define, or nil if there are none. If AllowWebhooks is set, it adds the consent to p.
func (pl *Planner) webhooks(live, p v1.Package, pkg *xpkg.Package) (*Webhooks, error) {
	objects, err := desired.Of(pkg, desired.Options{Package: p.GetName()})
	if err != nil {
		return nil, err
	}
	rules, err := objects.OutsideWebhookRules()
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	if pl.AllowWebhooks && len(webhooks.Unallowed(p, rules)) > 0 {
		webhooks.Allow(p, rules)
	}
	return &Webhooks{
		Outside: webhooks.Strings(rules), Unallowed: webhooks.Strings(webhooks.Unallowed(p, rules)),
		Consents: live != nil && live.GetAnnotations()[webhooks.AnnotationAllowed] != p.GetAnnotations()[webhooks.AnnotationAllowed],
	}, nil
}

// unallowed returns the rules of webhooks to which the user has not consented.
func (p *Plan) unallowed() []string {
	if p.Webhooks == nil {
		return nil
	}
	return p.Webhooks.Unallowed
}

// outside returns the rules of webhooks for resources that the package does not define.
func (p *Plan) outside() []string {
	if p.Webhooks == nil {
		return nil
	}
	return p.Webhooks.Outside
}

// commandToAllow returns the command that applies the plan and allows its webhooks.
func (p *Plan) commandToAllow() string {
	if p.Operation == Install {
		return fmt.Sprintf("xpkg install %s %s %s --allow-webhooks", strings.ToLower(p.Package.Kind), p.Package.To.Reference, p.Package.Name)
	}
	return fmt.Sprintf("xpkg update %s %s --allow-webhooks", p.Package.Short(), p.Package.To.Reference)
}
