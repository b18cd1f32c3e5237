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
func longest(image string, c *v1beta1.ImageConfig) string {
	found := ""
	for _, m := range c.Spec.MatchImages {
		if len(m.Prefix) > len(found) && matches(image, m.Prefix) {
			found = m.Prefix
		}
	}
	return found
}

// matches reports whether an image has a prefix. Prefixes are plain strings, as they are
// upstream, with one exception: a prefix without a slash (a host or part of one) has to
// end at a boundary of the reference, so that a prefix for registry.example.com does not
// match registry.example.com.evil.test.
func matches(image, prefix string) bool {
	rest, ok := strings.CutPrefix(image, prefix)
	if !ok || prefix == "" {
		return false
	}
	if strings.Contains(prefix, "/") || rest == "" {
		return true
	}
	const ends = "/:@"
	return strings.ContainsRune(ends, rune(rest[0])) || strings.ContainsRune(ends, rune(prefix[len(prefix)-1]))
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
