package desired

import "github.com/xpkg-dev/xpkg/pkg/xpkg"

// webhookNames gives webhook configurations the names that the field expects:
// crossplane-<kind>-<package>. A package that has several of a kind keeps the author's
// name behind that for all but the first one, where upstream would let the last one win.
type webhookNames struct {
	prefix string
	// seen are the kinds of which there was one.
	seen map[string]bool
}

// of is the name under which an object is installed.
func (n *webhookNames) of(o xpkg.Object) string {
	if !o.IsWebhookConfiguration() {
		return o.Name
	}
	if n.seen[o.GVK.Kind] {
		return n.prefix + "-" + o.Name
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[o.GVK.Kind] = true
	return n.prefix
}
