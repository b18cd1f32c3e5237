package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ErrNoRepositoryList is the code for a registry that does not list its repositories.
var ErrNoRepositoryList = errcode.Code{
	Name: "NoRepositoryList", Class: errcode.Unsupported,
	Cause: "The registry does not list its repositories, as many public registries do not.",
	Fix:   "Name the repositories one by one.",
}

// Repositories returns the repositories of a registry whose names have a prefix, in byte order, without duplicates (OCI
// distribution specification, "_catalog", which is optional). An empty prefix selects all of them. It omits invalid
// names, and reads at most 100 pages, from the registry's own host only. Credentials for the host are sent with the
// first request, because a registry can list fewer repositories to anonymous clients instead of asking for credentials.
func (r *Client) Repositories(ctx context.Context, registry, prefix string) ([]string, error) {
	s := r.session(oci.Reference{Registry: registry}.Host())
	c := call{
		method: http.MethodGet, url: s.url("/v2/_catalog"), actions: catalogActions,
		what: "list the repositories of " + registry,
	}
	s.sendFirst(ctx, c)
	var out []string
	err := s.pages(ctx, c, r.opts.Limits.Manifest, func(ans answer, err error) error {
		page, err := repositoryNames(registry, ans, err)
		out = append(out, page...)
		return err
	})
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(name string) bool { return !below(name, prefix) || !isRepository(registry, name) })
	slices.Sort(out)
	return slices.Compact(out), nil
}

// below reports whether a repository is the prefix or below it.
func below(name, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return prefix == "" || name == prefix || strings.HasPrefix(name, prefix+"/")
}

func isRepository(registry, name string) bool {
	ref, err := oci.ParseReference(registry+"/"+name, oci.ParseOptions{AllowUntagged: true})
	return err == nil && ref.Repository == name
}

// repositoryNames returns the repositories of a page.
func repositoryNames(registry string, ans answer, err error) ([]string, error) {
	if ans.Response != nil && slices.Contains([]int{
		http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusForbidden, http.StatusUnauthorized,
	}, ans.StatusCode) {
		return nil, ErrNoRepositoryList.New(err, "registry %s does not list its repositories", registry)
	}
	if err != nil {
		return nil, err
	}
	var list struct {
		Repositories []string `json:"repositories"`
	}
	if err := json.Unmarshal(ans.body, &list); err != nil {
		return nil,
			ErrNoRepositoryList.New(err, "registry %s responded with other content than a list of repositories", registry)
	}
	return list.Repositories, nil
}
