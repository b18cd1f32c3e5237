package cloudidentity

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// belongs returns the cloud to which a host belongs, or -1. It reads the names of the host from the right.
func belongs(host string) cloud {
	names := strings.Split(host, ".")
	for _, name := range names {
		plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		if !plain || name == "" || name[0] == '-' || name[len(name)-1] == '-' {
			return -1
		}
	}
	ends := func(zone string, more int) bool {
		zones := strings.Split(zone, ".")
		return len(names) >= len(zones)+more && slices.Equal(names[len(names)-len(zones):], zones)
	}
	amazonName := func(service string, zones ...string) bool {
		services := strings.Split(service, ".")
		at := len(services) + 2
		return len(names) > at && len(names[0]) == 12 && strings.Trim(names[0], "0123456789") == "" &&
			slices.Equal(names[1:at-1], services) && isRegion(names[at-1]) &&
			slices.Contains(zones, strings.Join(names[at:], "."))
	}
	switch {
	case host == "public.ecr.aws", amazonName("dkr-ecr", "on.aws"),
		amazonName("dkr.ecr", "amazonaws.com", "amazonaws.com.cn"):
		return amazon
	case ends("azurecr.io", 1), ends("azurecr.cn", 1), ends("azurecr.us", 1):
		return azure
	case ends("pkg.dev", 1), ends("gcr.io", 0):
		return google
	}
	return -1
}

// isRegion reports whether a name has the form of a region of Amazon, such as us-gov-west-1.
func isRegion(name string) bool {
	parts := strings.Split(name, "-")
	last := len(parts) - 1
	only := func(p, letters string) bool { return p != "" && strings.Trim(p, letters) == "" }
	if last < 2 || len(parts[0]) != 2 || len(parts[last]) > 2 || !only(parts[last], "0123456789") {
		return false
	}
	return !slices.ContainsFunc(parts[:last], func(p string) bool { return !only(p, "abcdefghijklmnopqrstuvwxyz") })
}

var ownHosts = []string{
	"123456789012.dkr.ecr.us-east-1.amazonaws.com", "123456789012.dkr.ecr.us-gov-west-1.amazonaws.com",
	"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", "123456789012.dkr-ecr.eu-central-1.on.aws", "public.ecr.aws",
	"acme.azurecr.io", "acme-x1.azurecr.cn", "acme.azurecr.us", "europe-docker.pkg.dev", "gcr.io", "eu.gcr.io",
}

// foreignHosts resemble those of a cloud.
var foreignHosts = []string{
	"evil-azurecr.io", "azurecr.io", "acme.azurecr.io.evil.org", "acme.azurecr.io:443", "acme.azurecr.io.",
	"acme.azurecr.de",
	"123456789012.dkr.ecr.us-east-1.amazonaws.com.evil.org", "x.dkr.ecr.us-east-1.amazonaws.com.evil.org",
	"123456789012.dkr-ecr.us-east-1.on.aws.evil.org", "x.dkr.ecr.us-east-1.amazonaws.com",
	"dkr.ecr.us-east-1.amazonaws.com",
	"123456789012.dkr.ecr.us-east-1.evil.org.amazonaws.com", "123456789012.dkr.ecr.us-east-1.on.aws",
	"123456789012.dkr-ecr.us-east-1.amazonaws.com", "123456789012.dkr.ecr.evil.org/.amazonaws.com",
	"1234567890123.dkr.ecr.us-east-1.amazonaws.com", "public.ecr.aws.evil.org", "x.public.ecr.aws", "public-ecr.aws",
	"evilpkg.dev", "pkg.dev", "x.pkg.dev.evil.org", "evilgcr.io", "gcr.io.evil.org", "eu.gcr.io@evil.org",
	"", "docker.io",
	"ACME.azurecr.io", "acme..azurecr.io", ".azurecr.io", "acme.azurecr.io\n", "127.0.0.1", "localhost:5000",
}

// Only the exact hosts of a cloud are taken for its registries, and never a host that only resembles one.
func TestRegistriesOfClouds(t *testing.T) {
	for _, host := range ownHosts {
		if r, ok := registryAt(host); !ok || r.cloud != belongs(host) || r.host != host {
			t.Errorf("%s: got %+v, %t", host, r, ok)
		}
	}
	for _, host := range foreignHosts {
		if r, ok := registryAt(host); ok || belongs(host) != -1 {
			t.Errorf("%q: got %+v, want %d", host, r, belongs(host))
		}
	}
}

// A host that is changed a little is that of the same cloud only if it still belongs to it.
func TestHostsThatResembleRegistries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.SampledFrom(ownHosts).Draw(t, "host")
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			at := rapid.OneOf(rapid.IntRange(0, len(host)), rapid.SampledFrom([]int{0, len(host)})).Draw(t, "at")
			text := rapid.SampledFrom([]string{
				".", "-", "x", "1", ":", "@", "/", "A", ".io", ".evil.org", "evil.", "%", " ", "\n", ".amazonaws.com",
			}).Draw(t, "text")
			cut := min(rapid.IntRange(0, 3).Draw(t, "cut"), len(host)-at)
			host = host[:at] + text + host[at+cut:]
		}
		want := belongs(host)
		r, ok := registryAt(host)
		if ok != (want >= 0) || ok && r.cloud != want {
			t.Fatalf("%q: got %+v, %t, want %d", host, r, ok, want)
		}
		if ok && r.endpoint != "" && !strings.HasSuffix(r.endpoint, ".amazonaws.com") &&
			!strings.HasSuffix(r.endpoint, ".amazonaws.com.cn") && !strings.HasSuffix(r.endpoint, ".api.aws") {
			t.Fatalf("%q: the token is requested from %s", host, r.endpoint)
		}
	})
}
