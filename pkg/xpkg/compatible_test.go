package xpkg

import "testing"

func TestCompatible(t *testing.T) {
	for _, c := range []struct{ constraint, version, want string }{
		{"", "v2.0.0", ""},
		{">=v1.14.0", "v2.0.0", ""},
		{">=v1.14.0-0", "v1.14.0-rc.1", ""},
		{"v0.13.0", "v0.13.0", ""},
		{"v0.13.0", "v2.0.0", `Provider "p" does not work with Crossplane v2.0.0: it requires "v0.13.0"`},
		{">=v1.14.0", "v1.14.0-rc.1", `Provider "p" does not work with Crossplane v1.14.0-rc.1: it requires ">=v1.14.0"`},
		// Releases of distributions, and builds of the main branch, are no prereleases of their release.
		{">=v1.15.0", "v2.1.1-up.1", ""},
		{">=v2.1.1", "2.1.1-up.12", ""},
		{"^1.20", "v1.20.3-acme.1+build", ""},
		{">=v2.1.1-0", "v2.1.1-up.1", ""},
		{">=v2.2.0", "v2.2.0-rc.0.28.g0123456", ""},
		{">=v2.2.0", "v2.2.0-rc.0-28-g0123456789ab", ""},
		{"<v2.0.0", "v2.1.1-up.1", `Provider "p" does not work with Crossplane v2.1.1-up.1: it requires "<v2.0.0"`},
		{">=v2.1.2", "v2.1.1-up.1", `Provider "p" does not work with Crossplane v2.1.1-up.1: it requires ">=v2.1.2"`},
		{">=v2.3.0", "v2.2.0-rc.0.28.g0123456", `Provider "p" does not work with Crossplane v2.2.0-rc.0.28.g0123456: it requires ">=v2.3.0"`},
		{">=v2.0.0", "v2.2.0-rc.1", `Provider "p" does not work with Crossplane v2.2.0-rc.1: it requires ">=v2.0.0"`},
		{">=v2.0.0", "v2.2.0-alpha1", `Provider "p" does not work with Crossplane v2.2.0-alpha1: it requires ">=v2.0.0"`},
		{">=v2.0.0", "v2.2.0-0", `Provider "p" does not work with Crossplane v2.2.0-0: it requires ">=v2.0.0"`},
		{">=v2.0.0", "v2.2.0-rc.1-up.1", `Provider "p" does not work with Crossplane v2.2.0-rc.1-up.1: it requires ">=v2.0.0"`},
		{">=v1", "master", `"master" is not a version of Crossplane: invalid semantic version`},
		{"x||", "v1.0.0", `cannot read the constraint of "p": improper constraint: ""`},
	} {
		err := Meta{Kind: Provider, Name: "p", Crossplane: c.constraint}.Compatible(c.version)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s with %s: got %q", c.constraint, c.version, got)
		}
	}
}
