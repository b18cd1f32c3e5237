package dependencies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/origin"
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
	ImageConfig     []string `placeholder:"FILE" config:"" help:"File with ImageConfigs (YAML). Packages are read from where a cluster with these ImageConfigs pulls them, with the credentials of this machine."`
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
	configs, err := readImageConfigs(env, f.ImageConfig)
	if err != nil {
		return nil, err
	}
	if locate == nil || len(configs) > 0 {
		locate = func(_ context.Context, ref oci.Reference) (fetch.Origin, error) {
			return origin.Without(configs, ref)
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

// ErrImageConfigFile is the code for a file of ImageConfigs that cannot be read.
var ErrImageConfigFile = errcode.Code{
	Name: "ImageConfigFile", Class: errcode.Usage,
	Cause: "A file of ImageConfigs that a flag, a variable or the configuration file names cannot be read.",
	Fix:   "Correct the path. `xpkg config view` shows whether --image-config has its value from XPKG_IMAGE_CONFIG or from the configuration file.",
}

// readImageConfigs reads the ImageConfigs in files, also those in lists, as `kubectl get imageconfigs -o yaml` writes
// them. It ignores other objects.
func readImageConfigs(env *terminal.Env, files []string) ([]v1beta1.ImageConfig, error) {
	var out []v1beta1.ImageConfig
	for _, file := range files {
		raw, err := env.ReadInput(file)
		if err != nil {
			return nil, ErrImageConfigFile.New(err, "cannot read the ImageConfigs")
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
		for {
			var document json.RawMessage
			err := decoder.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				out, err = appendImageConfigs(out, document)
			}
			if err != nil {
				return nil, imageconfig.ErrImageConfigInvalid.New(err, "cannot read the ImageConfigs of %s", file)
			}
		}
	}
	return out, nil
}

// appendImageConfigs appends an ImageConfig, or those of a list, in JSON.
func appendImageConfigs(out []v1beta1.ImageConfig, object json.RawMessage) ([]v1beta1.ImageConfig, error) {
	var head struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if len(object) == 0 { // an empty document
		return out, nil
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return nil, err
	}
	switch head.Kind {
	case "ImageConfig":
		var c v1beta1.ImageConfig
		err := json.Unmarshal(object, &c)
		return append(out, c), err
	case "List", "ImageConfigList":
		for _, item := range head.Items {
			var err error
			if out, err = appendImageConfigs(out, item); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
