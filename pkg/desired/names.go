package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// webhookNames returns the names of webhook configurations that Crossplane uses: crossplane-<kind>-<package>.
// If a package contains several of a kind, all but the first get the author's name as a suffix; Crossplane
// keeps only the last one. A name that becomes too long ends with a hash of the author's name.
type webhookNames struct {
	prefix string
	// seen holds the kinds that have occurred.
	seen map[string]bool
}

// of returns the name of an object in the cluster.
func (n *webhookNames) of(o xpkg.Object) string {
	if !o.IsWebhookConfiguration() {
		return o.Name
	}
	if n.seen[o.GVK.Kind] {
		return shortened(n.prefix + "-" + o.Name)
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[o.GVK.Kind] = true
	return n.prefix
}

// shortened returns a name, of which a hash replaces the end if it is too long for an object.
func shortened(name string) string {
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	const digits = 12
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-digits-1], "-.") + "-" +
		hex.EncodeToString(sum[:digits/2])
}
