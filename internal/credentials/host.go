package credentials

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// dockerHub lists the names of Docker Hub. Credentials for one of them are valid for all.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// place parses the key of an entry: a host with an optional port and path, or a URL of
// Docker's tools such as https://index.docker.io/v1/. The host is empty if the key does
// not contain a valid one.
func place(key string) (host, path string) {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	name, path, _ := strings.Cut(key, "/")
	for _, version := range []string{"v1", "v2"} {
		if path == version {
			path = ""
		}
		path = strings.TrimPrefix(path, version+"/")
	}
	return canonical(name), strings.TrimSuffix(path, "/")
}

// canonical returns the canonical spelling of a host, as in references, and "" if the
// argument is not a host.
func canonical(host string) string {
	ref, err := oci.ParseReference(host+"/any", oci.ParseOptions{AllowUntagged: true})
	if err != nil || ref.Repository != "any" {
		return ""
	}
	if slices.Contains(dockerHub, ref.Registry) {
		return dockerHub[0]
	}
	return ref.Registry
}
