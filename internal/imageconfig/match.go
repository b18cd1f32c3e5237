package imageconfig

import (
	"strings"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// matched is a selected image config with the matching prefix.
type matched struct {
	config *v1beta1.ImageConfig
	prefix string
}

// best selects the config for one purpose: among the configs that configure the purpose,
// the one with the longest matching prefix, and the first by name of several. The order
// of the configs has no effect.
func best(image string, configs []v1beta1.ImageConfig, configures func(*v1beta1.ImageConfigSpec) bool) (matched, bool) {
	var found matched
	for i := range configs {
		c := &configs[i]
		if !configures(&c.Spec) {
			continue
		}
		prefix := longest(image, c)
		switch {
		case prefix == "" || len(prefix) < len(found.prefix):
		case len(prefix) > len(found.prefix) || c.Name < found.config.Name:
			found = matched{config: c, prefix: prefix}
		}
	}
	return found, found.config != nil
}

// longest returns the longest matching prefix of a config, and "" if none matches.
func longest(image string, c *v1beta1.ImageConfig) string { return longestOf(image, c, matches) }

func longestOf(image string, c *v1beta1.ImageConfig, matches func(image, prefix string) bool) string {
	found := ""
	for _, m := range c.Spec.MatchImages {
		if len(m.Prefix) > len(found) && matches(image, m.Prefix) {
			found = m.Prefix
		}
	}
	return found
}

// strictest returns the configs whose verification an image must meet: those with the longest matching prefix, and
// those with the longest one that ends where a part of the reference ends. So a config for registry/a, which also
// matches registry/ab, can add a requirement to that and takes none away.
func strictest(image string, configs []v1beta1.ImageConfig) []*v1beta1.ImageConfig {
	var out []*v1beta1.ImageConfig
	for _, matches := range []func(image, prefix string) bool{matches, matchesWhole} {
		var found []*v1beta1.ImageConfig
		length := 1
		for i := range configs {
			c := &configs[i]
			if c.Spec.Verification == nil {
				continue
			}
			if n := len(longestOf(image, c, matches)); n >= length {
				if n > length {
					found, length = nil, n
				}
				found = append(found, c)
			}
		}
		out = append(out, found...)
	}
	return out
}

// matchesWhole reports whether an image has a prefix that ends at a boundary of the reference.
func matchesWhole(image, prefix string) bool {
	return matches(image, prefix) && endsAtBoundary(image, prefix)
}

func endsAtBoundary(image, prefix string) bool {
	const ends = "/:@"
	rest := image[len(prefix):]
	return rest == "" || strings.ContainsRune(ends, rune(rest[0])) ||
		strings.ContainsRune(ends, rune(prefix[len(prefix)-1]))
}

// matches reports whether an image has a prefix. Prefixes are plain strings, as they are
// upstream, with one exception: a prefix without a slash (a host or part of one) has to
// end at a boundary of the reference, so that a prefix for registry.example.com does not
// match registry.example.com.evil.test.
func matches(image, prefix string) bool {
	return prefix != "" && strings.HasPrefix(image, prefix) &&
		(strings.Contains(prefix, "/") || endsAtBoundary(image, prefix))
}

// with returns an image with the matching prefix replaced.
func (m matched) with(image, prefix string) string {
	return prefix + strings.TrimPrefix(image, m.prefix)
}

// Concerns reports whether a config can apply to any of the images: the references of a
// package as written, and after rewriting.
func Concerns(c *v1beta1.ImageConfig, images ...string) bool {
	for _, image := range images {
		if longest(image, c) != "" {
			return true
		}
	}
	return false
}
