package dependencies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/versions"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// resolverFlags configure the resolution of dependencies.
type resolverFlags struct {
	content.ContentFlags
	DefaultRegistry string   `placeholder:"HOST" config:"" help:"Registry of dependencies without a registry. Without this flag, such dependencies are an error."`
	ImageConfig     []string `placeholder:"FILE" config:"" help:"File with ImageConfigs (YAML), and with the Secrets that they name for signatures. Packages are read from where a cluster with these ImageConfigs pulls them, with the credentials of this machine."`
}

// throttle is the maximum delay that a registry can request between two requests.
const throttle = 20 * time.Second

// rootResolver resolves dependency trees until it is closed.
type rootResolver struct {
	*resolver.Resolver
	locate  versions.Locate
	content *fetch.Source
	source  *content.LazySource
}

// open returns a resolver. If locate is nil, the flags determine the locations of packages.
func (f resolverFlags) open(env *terminal.Env, locate versions.Locate) (*rootResolver, error) {
	files, err := content.ReadImageConfigs(env, f.ImageConfig)
	if err != nil {
		return nil, err
	}
	if locate == nil || len(files.Configs) > 0 {
		locate = func(_ context.Context, ref oci.Reference) (fetch.Origin, error) {
			return files.Find(ref)
		}
	}
	if f.DefaultRegistry != "" {
		if f.DefaultRegistry, err = flags.ParseHost(f.DefaultRegistry); err != nil {
			return nil, err
		}
	}
	late := &content.LazySource{Flags: f.ContentFlags, Patience: throttle}
	source, err := late.Open(env.Context)
	if err != nil {
		return nil, err
	}
	r := &resolver.Resolver{Registry: fetch.NewRegistry(source, locate), DefaultRegistry: f.DefaultRegistry, Hints: late}
	return &rootResolver{Resolver: r, locate: locate, content: source, source: late}, nil
}

// Close implements io.Closer.
func (r *rootResolver) Close() error { return r.source.Close() }

// resolve resolves a dependency tree and reports progress. It prints the explanation of a conflict unchanged.
func (r *rootResolver) resolve(env *terminal.Env, q resolver.Request) (resolver.Result, error) {
	p := terminal.StartTask(env.Stderr, "resolving dependencies")
	defer p.End()
	got, err := r.Resolve(env.Context, q)
	p.End()
	view.Notes(env.Stderr, got.Notes...)
	var conflict *solver.Conflict
	if !errors.As(err, &conflict) {
		return got, err
	}
	fmt.Fprintf(env.Stderr, "%s\n", terminal.Safe(conflict.Explanation.String()))
	f := errcode.From(err)
	do := f.Do
	switch len(conflict.Explanation.Suggestions) {
	case 0:
	case 1:
		do = "Make the change above, which was verified to resolve the conflict."
	default:
		do = "Make one of the changes above. Each was verified to resolve the conflict."
	}
	return got, f.Code.New(nil, "%s", f.What).WithDo("%s", do)
}
