package imageconfig

import (
	"strings"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// matched is an image config that was chosen, and the prefix that matched.
type matched struct {
	config *v1beta1.ImageConfig
	prefix string
}

// best chooses the config for one purpose: the one with the longest matching
// prefix among those that say something about it, and of several the first by
// name. Nothing depends on the order of the configs.
func best(image string, configs []v1beta1.ImageConfig, speaks func(*v1beta1.ImageConfigSpec) bool) (matched, bool) {
	var found matched
	for i := range configs {
		c := &configs[i]
		if !speaks(&c.Spec) {
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

// longest gives the longest prefix of a config that matches; empty when none does.
func longest(image string, c *v1beta1.ImageConfig) string {
	found := ""
	for _, m := range c.Spec.MatchImages {
		if len(m.Prefix) > len(found) && matches(image, m.Prefix) {
			found = m.Prefix
		}
	}
	return found
}

// matches says whether an image has a prefix. Prefixes are plain strings, as they
// are upstream, except that one without a slash, which is a host or less, has to
// end where a part of the reference ends: what is meant for registry.example.com
// must not reach registry.example.com.evil.test.
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

// with is an image with other words in the place of the prefix that matched.
func (m matched) with(image, prefix string) string {
	return prefix + strings.TrimPrefix(image, m.prefix)
}

// Concerns says whether a config can have to do with any of the images: the
// references of a package as they are written, and as they were rewritten.
func Concerns(c *v1beta1.ImageConfig, images ...string) bool {
	for _, image := range images {
		if longest(image, c) != "" {
			return true
		}
	}
	return false
}
