// Package imageconfig evaluates the ImageConfigs of a cluster for an image: its name
// after rewriting, its sources, and their pull secrets. It works on strings alone.
package imageconfig

import (
	"cmp"
	"maps"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrImageConfigInvalid is the code for an ImageConfig that matches an image and is
// incomplete.
var ErrImageConfigInvalid = errcode.Code{
	Name: "ImageConfigInvalid", Class: errcode.Invalid,
	Cause: "An ImageConfig that matches the image is incomplete or contains an invalid reference.",
	Fix:   "Correct the named ImageConfig. The change takes effect at once.",
}

// Source is a reference from which an image can be pulled, with the settings for its
// access.
type Source struct {
	Image string
	// PullSecrets are the names of the secrets with credentials, in the order in which
	// they are tried: first the secrets of the package, then the secret of the
	// ImageConfig.
	PullSecrets []string
	// CABundle (PEM) is trusted instead of the system's authorities; empty for
	// those.
	CABundle string
	// PlainHTTP uses HTTP without TLS.
	PlainHTTP bool
}

// Route is the result of evaluating the ImageConfigs for an image.
type Route struct {
	// Image is the reference after rewriting; or the given reference if none applies.
	Image string
	// Sources are the mirrors in their order and then Image. It is never empty.
	Sources []Source
	// Verifications are the requirements for the signatures of the image, all of which it must meet, in the order of
	// their names.
	Verifications []Verification
	// Applied are the configs that took effect, in the order of name and reason,
	// each reason once.
	Applied []v1.ImageConfigRef
	// Runtime is the configuration of the runtime, nil if no config sets one. It takes
	// precedence over the configuration of the package.
	Runtime *v1.RuntimeConfigReference
}

// Verification is a requirement for the signatures of an image.
type Verification struct {
	// Config is the name of the ImageConfig.
	Config string
	Cosign *v1beta1.CosignVerification
}

// Images returns all references of a route, for [Concerns].
func (r Route) Images() []string {
	out := []string{r.Image}
	for _, s := range r.Sources {
		if !slices.Contains(out, s.Image) {
			out = append(out, s.Image)
		}
	}
	return out
}

// The predicates for each purpose, which are selected independently.
func rewrites(s *v1beta1.ImageConfigSpec) bool { return s.RewriteImage != nil }
func mirrors(s *v1beta1.ImageConfigSpec) bool {
	return s.Registry != nil && len(s.Registry.Mirrors) > 0
}
func runs(s *v1beta1.ImageConfigSpec) bool { return s.Runtime != nil && s.Runtime.ConfigRef != nil }

func authenticates(s *v1beta1.ImageConfigSpec) bool {
	return s.Registry != nil && s.Registry.Authentication != nil && s.Registry.Authentication.PullSecretRef.Name != ""
}

func transports(s *v1beta1.ImageConfigSpec) bool {
	return s.Registry != nil && (s.Registry.CABundle != "" || s.Registry.PlainHTTP)
}

// Choose evaluates the configs for an image of a package with the given pull secrets. It
// rewrites the reference once. All other purposes match the rewritten reference and, for
// a mirror, the reference of the mirror. Verification also matches the given reference, so
// that rewriting does not switch it off. It fails with ImageConfigInvalid if a selected
// config is incomplete.
func Choose(image string, packagePullSecrets []string, configs []v1beta1.ImageConfig) (Route, error) {
	c := chooser{secrets: packagePullSecrets, configs: configs, route: Route{Image: image}}
	for _, step := range []func() error{c.rewrite, func() error { return c.verify(image) }, c.mirrors} {
		if err := step(); err != nil {
			return Route{}, err
		}
	}
	c.source(c.route.Image)
	if m, ok := c.best(c.route.Image, runs, v1.ImageConfigReasonRuntime); ok {
		c.route.Runtime = m.config.Spec.Runtime.ConfigRef.DeepCopy()
	}
	slices.SortFunc(c.route.Applied, func(a, b v1.ImageConfigRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason))
	})
	c.route.Applied = slices.Compact(c.route.Applied)
	return c.route, nil
}

// chooser builds a route, purpose by purpose.
type chooser struct {
	secrets []string
	configs []v1beta1.ImageConfig
	route   Route
}

// best selects the config for a purpose and records it.
func (c *chooser) best(
	image string, configures func(*v1beta1.ImageConfigSpec) bool, reason v1.ImageConfigRefReason,
) (matched, bool) {
	m, ok := best(image, c.configs, configures)
	if ok {
		c.route.Applied = append(c.route.Applied, v1.ImageConfigRef{Name: m.config.Name, Reason: reason})
	}
	return m, ok
}

func (c *chooser) rewrite() error {
	m, ok := c.best(c.route.Image, rewrites, v1.ImageConfigReasonRewrite)
	if !ok {
		return nil
	}
	prefix := m.config.Spec.RewriteImage.Prefix
	if prefix == "" {
		return ErrImageConfigInvalid.New(nil, "the ImageConfig %s rewrites images to an empty prefix", m.config.Name)
	}
	c.route.Image = m.with(c.route.Image, prefix)
	return nil
}

// verify selects the requirements for a reference and for the rewritten one.
func (c *chooser) verify(image string) error {
	selected := map[string]Verification{}
	for _, name := range []string{image, c.route.Image} {
		for _, config := range strictest(name, c.configs) {
			v := Verification{Config: config.Name, Cosign: config.Spec.Verification.Cosign}
			if problem := problemOf(v.Cosign); problem != "" {
				return ErrImageConfigInvalid.New(
					nil, "the ImageConfig %s requires verification of %s and %s", config.Name, name, problem,
				)
			}
			selected[config.Name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(selected)) {
		c.route.Verifications = append(c.route.Verifications, selected[name])
		c.route.Applied = append(c.route.Applied, v1.ImageConfigRef{Name: name, Reason: v1.ImageConfigReasonVerify})
	}
	return nil
}

func (c *chooser) mirrors() error {
	m, ok := c.best(c.route.Image, mirrors, v1.ImageConfigReasonMirror)
	if !ok {
		return nil
	}
	for _, mirror := range m.config.Spec.Registry.Mirrors {
		if mirror.Prefix == "" {
			return ErrImageConfigInvalid.New(nil, "the ImageConfig %s has a mirror without a prefix", m.config.Name)
		}
		if image := m.with(c.route.Image, mirror.Prefix); !slices.Contains(c.route.Images(), image) {
			c.source(image)
		}
	}
	return nil
}

// source adds a reference to the sources of the image.
func (c *chooser) source(image string) {
	s := Source{Image: image, PullSecrets: slices.Clone(c.secrets)}
	if m, ok := c.best(image, authenticates, v1.ImageConfigReasonPullSecret); ok {
		s.PullSecrets = append(s.PullSecrets, m.config.Spec.Registry.Authentication.PullSecretRef.Name)
	}
	s.PullSecrets = unique(s.PullSecrets)
	if m, ok := c.best(image, transports, v1.ImageConfigReasonRegistry); ok {
		s.CABundle, s.PlainHTTP = m.config.Spec.Registry.CABundle, m.config.Spec.Registry.PlainHTTP
	}
	c.route.Sources = append(c.route.Sources, s)
}

// unique removes duplicates and empty names.
func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
