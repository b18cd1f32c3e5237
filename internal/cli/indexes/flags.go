// Package indexes implements the commands for indexes of registries: building them, and finding kinds and packages in
// them.
package indexes

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// cacheLimit is the maximum size of the package cache for these commands, which is the default of the manager.
const cacheLimit = 10 << 30

// Flags selects the indexes of a command.
type Flags struct {
	Index []string `sep:" " placeholder:"REF[,PRIORITY]" env:"XPKG_INDEX" config:"" help:"Index to search; repeat it for several, or separate them by spaces in the variable. The index with the highest priority comes first; the default is 0."`
	content.IndexKeyFlag
	Offline bool `help:"Use the state of the index that was fetched last, without accessing a registry."`
	content.ContentFlags
}

// access is the access to registries and to the package cache.
type access struct {
	remote *remote.Client
	cache  *cache.Cache
	source *fetch.Source
}

// openAccess opens the package cache. It accesses no registry. A nil keychain selects the credentials of the user.
func openAccess(env *terminal.Env, f content.ContentFlags, keychain authn.Keychain) (*access, error) {
	registries, err := flags.RegistryFlags{
		TrustFlags: f.TrustFlags, Keychain: keychain,
	}.Options(env.Context, oci.Limits{}, nil)
	if err != nil {
		return nil, err
	}
	a := &access{remote: remote.New(registries)}
	if a.cache, err = f.CacheFlags.Open(cacheLimit); err != nil {
		return nil, err
	}
	a.source = fetch.NewSource(fetch.Options{Remote: registries, Store: a.cache.Store(), Names: a.cache})
	return a, nil
}

// Close closes the connections and the package cache.
func (a *access) Close() error {
	a.source.Close()
	a.remote.Close()
	return a.cache.Close()
}

// open opens the indexes of the flags.
func (f *Flags) open(env *terminal.Env, a *access) (indexer.Set, error) {
	if len(f.Index) == 0 {
		return nil, noIndex()
	}
	keys, err := f.Keys(env.Context)
	if err != nil {
		return nil, err
	}
	client := indexer.Client{
		Remote: a.remote, Store: a.cache.Store(), Offline: f.Offline, Keys: keys,
		Warn: func(err error) {
			fmt.Fprintf(
				env.Stderr, "warning: the state of the index that was fetched last is used: %s\n", terminal.Safe(err.Error()),
			)
		},
	}
	var set indexer.Set
	for _, s := range f.Index {
		location, priority, err := indexer.ParseLocation(s)
		if err != nil {
			return nil, err
		}
		if isHost(location) {
			do := fmt.Sprintf("Write the repository and the tag of the index, such as %s/index:main.", location)
			if location == flags.LocalRegistry() {
				do = buildLocal(location)
			}
			return nil,
				terminal.ErrUsage.New(nil, "%s is a registry, and an index is a package in one", location).WithDo("%s", do)
		}
		ref, err := flags.ParseReference(location)
		if err != nil {
			return nil, err
		}
		progress := terminal.StartTask(env.Stderr, "fetching the index %s", ref)
		r, err := client.Open(env.Context, ref)
		progress.End()
		if err != nil {
			return nil, err
		}
		set = append(set, indexer.Indexed{Location: location, Priority: priority, Reader: r})
	}
	set.Sort()
	return set, nil
}

// noIndex returns the error of a command without an index. It names the command that builds an index of the packages in
// the registry of the control plane of this machine.
func noIndex() error {
	err := indexer.ErrNoIndex.New(nil, "no index is configured")
	if local := flags.LocalRegistry(); local != "" {
		return err.WithDo("Name one with --index, or set XPKG_INDEX. %s", buildLocal(local))
	}
	return err
}

// buildLocal returns the sentence that names the commands for an index of the registry of the control plane of this
// machine, which publishes none.
func buildLocal(registry string) string {
	return fmt.Sprintf("For the packages in the registry of the control plane, build one with `xpkg index build %[1]s/index:main --registry %[1]s`, and pass `--index %[1]s/index:main`. "+
		"The page http://%[1]s/search searches them without one.", registry)
}

// isHost reports whether a location is the address of a registry: without a repository, its port has the form of a tag.
func isHost(location string) bool {
	host, port, err := net.SplitHostPort(location)
	_, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && (host == "localhost" || strings.Contains(host, "."))
}

// with calls do with the indexes of the flags.
func (f *Flags) with(env *terminal.Env, do func(*access, indexer.Set) error) (err error) {
	a, err := openAccess(env, f.ContentFlags, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	set, err := f.open(env, a)
	if err != nil {
		return err
	}
	return do(a, set)
}
