package firstgeneration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// content is the package that a Provider gets.
type content struct {
	// of is the first install object of the Provider.
	of  *install
	pkg *xpkg.Package
	// refusals are the reasons why the Provider could not take over CRDs of the package.
	refusals []plan.Refusal
	// err is the reason why the package cannot be read here.
	err error
}

// readContents reads the packages of the Providers that do not run yet, and records the problems that the manager would
// have with them: at this point, the former package manager still runs.
func (m *Migration) readContents(ctx context.Context, s *snapshot) {
	if m.Content == nil {
		return
	}
	read := map[string]*content{}
	for _, in := range s.installs {
		if in.reference.Repository == "" || isRunning(s.providers[in.provider]) {
			continue
		}
		c := read[in.provider]
		if c == nil {
			c = &content{of: in}
			c.pkg, c.err = m.readPackage(ctx, in)
			read[in.provider] = c
			s.contents = append(s.contents, c)
		}
		s.problems = append(s.problems, c.problems(in)...)
	}
	s.problems = append(s.problems, s.shared()...)
	for _, c := range s.contents {
		if c.err == nil {
			c.refusals, c.err = m.refusals(ctx, s, c)
		}
		s.problems = append(s.problems, s.refused(c)...)
	}
}

// isRunning reports whether the manager runs a Provider, which is then not moved any more.
func isRunning(p *v1.Provider) bool { return p != nil && p.Annotations[annotationMoving] == "" }

// problems returns the reasons why the package cannot replace the installation of an install object. A package that
// only this machine cannot read is none.
func (c *content) problems(in *install) []migration.Finding {
	if c.err != nil {
		class := errcode.From(c.err).Code.Class
		if class != errcode.NotFound && class != errcode.Invalid {
			return nil
		}
		return []migration.Finding{{
			Problem: fmt.Sprintf(
				"%s has the package %s, which cannot be installed: %s", in.describe(), in.reference, errcode.From(c.err).What,
			),
			Remedy: "push the package, or name another one in the file of --replace",
		}}
	}
	var out []migration.Finding
	defined := c.pkg.NamesOf(plan.DefinitionKind)
	for _, crd := range in.crds {
		if !slices.Contains(defined, crd.Name) {
			out = append(out, migration.Finding{
				Problem: fmt.Sprintf(
					"%s has the CRD %s, which the package %s does not contain", in.describe(), crd.Name, in.reference,
				),
				Remedy: "name a package with the CRD in the file of --replace",
			})
		}
	}
	return out
}

// refused returns a problem for each CRD that the Provider of a package could not take over, even with the consent of a
// user: its controller would be stopped, and never run again. CRDs that the package of another Provider contains are in
// the result of shared.
func (s *snapshot) refused(c *content) []migration.Finding {
	var out []migration.Finding
	for _, r := range c.refusals {
		isShared := slices.ContainsFunc(s.contents, func(x *content) bool {
			return x != c && x.pkg != nil && slices.Contains(x.pkg.NamesOf(plan.DefinitionKind), r.Ref.Name)
		})
		if r.Cause == plan.NeedsAdoption || isShared {
			continue
		}
		remedy := "name a package that fits the cluster in the file of --replace"
		if fix := strings.TrimSuffix(r.Fix, "."); fix != "" {
			remedy = strings.ToLower(fix[:1]) + fix[1:] + ", or " + remedy
		}
		out = append(out, migration.Finding{
			Problem: fmt.Sprintf(
				"%s has the package %s, which the manager would refuse: %s", c.of.describe(), c.of.reference, r.Reason,
			), Remedy: remedy,
		})
	}
	return out
}

// shared returns a problem for each CRD in the packages of two Providers, except for CRDs that the records of both
// list: these are reported without the packages.
func (s *snapshot) shared() []migration.Finding {
	var out []migration.Finding
	first := map[string]*content{}
	for _, c := range s.contents {
		if c.err != nil {
			continue
		}
		for _, name := range c.pkg.NamesOf(plan.DefinitionKind) {
			other := first[name]
			if other == nil {
				first[name] = c
				continue
			}
			if s.records(other.of.provider, name) && s.records(c.of.provider, name) {
				continue
			}
			out = append(out, migration.Finding{
				Problem: fmt.Sprintf(
					"the packages %s of %s and %s of %s both contain the CRD %s", other.of.reference, other.of.describe(),
					c.of.reference, c.of.describe(), name,
				),
				Remedy: "delete one of the objects, or name a package without the CRD in the file of --replace",
			})
		}
	}
	return out
}

// records reports whether a record of an install object with a Provider lists a CRD of the cluster.
func (s *snapshot) records(provider, crd string) bool {
	return slices.ContainsFunc(s.installs, func(in *install) bool {
		return in.provider == provider &&
			slices.ContainsFunc(in.crds, func(d *apiextensionsv1.CustomResourceDefinition) bool { return d.Name == crd })
	})
}

// readPackage reads the package of an install object, with its pull secrets.
func (m *Migration) readPackage(ctx context.Context, in *install) (*xpkg.Package, error) {
	var secrets []string
	for _, r := range in.spec.ImagePullSecrets {
		secrets = append(secrets, r.Name)
	}
	finder := origin.Finder{Reader: m.Client, Secrets: m.Client, Namespace: in.namespace}
	o, _, err := finder.Find(ctx, in.reference.String(), secrets)
	if err != nil {
		return nil, err
	}
	digest, err := m.Content.Resolve(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	return m.Content.Read(ctx, o, digest, true)
}
