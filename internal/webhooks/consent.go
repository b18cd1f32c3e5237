package webhooks

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// AnnotationAllowed on a package or on a revision lists the rules that its webhooks may have for resources that the
// package does not define, as [desired.FormatWebhookRules] writes them. The content of a package
// cannot set annotations of this domain.
const AnnotationAllowed = "xpkg.dev/allowed-webhooks"

// ErrNotAllowed is the code for a package whose webhooks cover resources that it does not define.
var ErrNotAllowed = errcode.Code{
	Name: "WebhooksNotAllowed", Class: errcode.Unauthorized, Approval: true,
	Cause: "Webhooks of the package cover resources that the package does not define, and the user has not allowed that.",
	Fix:   "Review the rules in the message. Allow them with `xpkg approve`, or use a version of the package without them.",
}

// Unallowed returns the rules to which no user has consented, in the annotations of a package and its revision.
func Unallowed(rules []desired.WebhookRule, consents ...metav1.Object) []desired.WebhookRule {
	var allowed []desired.WebhookRule
	for _, o := range consents {
		allowed = append(allowed, desired.ParseWebhookRules(o.GetAnnotations()[AnnotationAllowed])...)
	}
	return desired.UncoveredWebhookRules(allowed, rules)
}

// Allow sets the consent to rules on a package. It replaces an earlier consent.
func Allow(p v1.Package, rules []desired.WebhookRule) {
	annotations := desired.Overlay(p.GetAnnotations(), map[string]string{
		AnnotationAllowed: desired.FormatWebhookRules(rules),
	})
	p.SetAnnotations(annotations)
}

// NotAllowed returns ErrNotAllowed for rules of a package without consent. Do is the command
// with which a user allows them.
func NotAllowed(p string, rules []string, do string) *errcode.Error {
	return ErrNotAllowed.New(
		errors.New(strings.Join(rules, "; ")), "webhooks of %s cover resources that it does not define", p,
	).
		WithDo("Review these rules. To allow them, run `%s`.", do)
}

// Strings returns the string of each rule.
func Strings(rules []desired.WebhookRule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.String())
	}
	return out
}
