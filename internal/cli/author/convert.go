package author

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/firstgen"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/archive"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/oci/packagestream"
	"github.com/xpkg-dev/xpkg/pkg/version"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrNotFirstGeneration is the code for a package that has today's format already.
var ErrNotFirstGeneration = errcode.Code{
	Name: "NotFirstGeneration", Class: errcode.Usage,
	Cause: "The package has a package.yaml, crossplane.yaml or the file of a Project: it is a package of today.",
	Fix:   "No conversion is needed. Build the folder with `xpkg build`, or use the image as it is.",
}

// ConvertCmd implements `xpkg convert`.
type ConvertCmd struct {
	Package  string   `arg:"" name:"src" help:"Package of the first generation: a folder with .registry or its source form, a reference, a file of an image, oci:DIR, or - for standard input."`
	Output   string   `short:"o" required:"" placeholder:"FILE|DIR" help:"Package file to write, if the name ends in .xpkg, otherwise the folder for the files of the package."`
	Provides []string `placeholder:"CRD=REPOSITORY@CONSTRAINT" sep:"none" help:"Package that defines a required CRD, such as clusters.compute.acme.io=ghcr.io/acme/compute@>=v1.0.0. The CRD can be *.GROUP."`
	content.KindIndexFlag
	Report string `enum:"text,json" default:"text" placeholder:"text|json" help:"Format of the report. Default is text."`
	runtimeFlags
	flags.CacheFlags
	location.TransferFlags
}

// convertReport is the report in JSON.
type convertReport struct {
	Name   string          `json:"name"`
	Output string          `json:"output"`
	Digest string          `json:"digest,omitempty"`
	Losses []firstgen.Loss `json:"losses"`
	// RuntimeConfig is the file with the DeploymentRuntimeConfig; empty if none was needed.
	RuntimeConfig string `json:"runtimeConfig,omitempty"`
}

// conversion is a converted package with its source.
type conversion struct {
	*firstgen.Conversion
	of *firstgen.Package
	// base is the runtime image; nil if there is none.
	base *image.Image
	pkg  *xpkg.Package
}

// Run converts a package, and reports the parts of it that have no equivalent.
func (c *ConvertCmd) Run(env *terminal.Env) error {
	if embeds := c.EmbedRuntimeImage + c.EmbedRuntimeImageTarball + c.EmbedGoProgram; embeds != "" && !c.toFile() {
		return terminal.ErrUsage.New(nil, "a folder contains no runtime image").
			WithDo(
				"Name a file that ends in .xpkg, or pass the flag to `xpkg build` for the folder %s.",
				filepath.Join(c.Output, "package"),
			)
	}
	at, err := location.Parse(c.Package)
	if err != nil {
		return err
	}
	if info, err := os.Stat(at.Path); at.Kind == location.File && err == nil && info.IsDir() && !isLayout(at.Path) {
		return c.folder(env, at.Path)
	}
	return c.WithPackage(env, at, c.Platform, func(m location.Transfer, o *location.Opened, manifest oci.Manifest) error {
		content, err := packagestream.ReadContent(env.Context, o, manifest, packagestream.Options{
			Limits: m.Limits, Format: c.StreamLimits(),
		})
		if err != nil {
			return err
		}
		if content.First == nil {
			return ErrNotFirstGeneration.New(nil, "%s has a %s", c.Package, oci.PackageFile)
		}
		if err := firstgen.CheckTag(content.First.App.Version, at.Ref.Tag); err != nil {
			return err
		}
		base, done, err := c.runtime(env, c.TransferFlags)
		if err != nil {
			return err
		}
		if base == nil && c.toFile() {
			// The image of the package contains its runtime.
			platform, err := location.ParsePlatform(c.Platform)
			if err != nil {
				return err
			}
			if base, err = image.Load(env.Context, o, platform, m.Limits); err != nil {
				return err
			}
		}
		return cmp.Or(c.convert(env, content.First, base), done())
	})
}

// toFile reports whether the output is a package file, which contains the runtime image, and not a folder.
func (c *ConvertCmd) toFile() bool { return strings.HasSuffix(c.Output, ".xpkg") }

// folder converts a package in a folder.
func (c *ConvertCmd) folder(env *terminal.Env, dir string) (err error) {
	f, ok, err := findFirst(dir)
	if err != nil {
		return err
	}
	if !ok {
		if file := location.Metadata(dir); file != "" {
			return ErrNotFirstGeneration.New(nil, "%s contains %s", dir, file)
		}
		return firstgen.ErrNoRegistryFolder.New(nil, "%s contains no package of the first generation", dir)
	}
	pkg, err := f.read(c.StreamLimits())
	if err != nil {
		return err
	}
	base, done, err := c.runtime(env, c.TransferFlags)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, done()) }()
	return c.convert(env, pkg, base)
}

func (c *ConvertCmd) convert(env *terminal.Env, of *firstgen.Package, base *image.Image) (err error) {
	// A package that cannot be installed as it is cannot be installed after its conversion either.
	found, err := lintFirst(of, nil, false, c.StreamLimits())
	if err != nil {
		return err
	}
	if err := xpkg.Failed(found); err != nil {
		return err
	}
	providers, err := c.openProviders(env)
	if err != nil {
		return err
	}
	defer terminal.Close(&err, providers)
	if err := providers.stated.checkUsed(of.App.DependsOn); err != nil {
		return err
	}
	result, err := firstgen.Convert(of, firstgen.ConvertOptions{Provides: providers.of, Bake: base != nil})
	if err := cmp.Or(err, providers.err); err != nil {
		return err
	}
	if base == nil {
		result.Losses = append(result.Losses, c.withoutImage(result)...)
	}
	pkg, err := xpkg.Read(result.Stream(), xpkg.ReadOptions{Limits: c.StreamLimits(), Policy: xpkg.PolicyBuild()})
	if err != nil {
		return err
	}
	all := &conversion{Conversion: result, of: of, base: base, pkg: pkg}
	report := convertReport{Name: pkg.Meta.Name, Output: c.Output, Losses: result.Losses}
	if c.toFile() {
		err = c.writeFile(env, all, &report)
	} else {
		err = c.writeFolder(env, all, &report)
	}
	if err != nil {
		return err
	}
	return c.writeReport(env, report)
}

// withoutImage returns the losses of a package that is converted without its image.
func (c *ConvertCmd) withoutImage(of *firstgen.Conversion) []firstgen.Loss {
	lost := firstgen.Loss{Reason: firstgen.ReasonRuntimeImage}
	switch {
	case of.Templating != nil && of.Templating.Source.Image == "":
		lost.File, lost.Field, lost.Message = "behavior.yaml", "source.path",
			"the templates are in the image of the package, which a folder does not contain"
	case of.Image == "" && !of.Runtime.None:
		lost.File, lost.Message = "install.yaml",
			"the controller runs the image of the package, which a folder does not contain"
	default:
		return nil
	}
	if c.toFile() {
		lost.Message += "; use --embed-runtime-image, or convert the image"
	} else {
		lost.Message += "; pass it to `xpkg build` with --embed-runtime-image"
	}
	return []firstgen.Loss{lost}
}

func (c *ConvertCmd) writeReport(env *terminal.Env, r convertReport) error {
	if c.Report == "json" {
		if r.Losses == nil {
			r.Losses = []firstgen.Loss{}
		}
		return view.WriteJSON(env.Stdout, r)
	}
	for _, l := range r.Losses {
		fmt.Fprintln(env.Stdout, strings.ReplaceAll(terminal.Safe(l.String()), "\n", `\n`))
	}
	if r.RuntimeConfig != "" {
		fmt.Fprintf(
			env.Stdout, "%s: the parts of the Deployment that an image cannot contain\n", terminal.SafeLine(r.RuntimeConfig),
		)
	}
	return env.Say(
		"%s: Provider %s, %s without an equivalent\n", terminal.SafeLine(r.Output), terminal.SafeLine(r.Name),
		wording.Count(len(r.Losses), "part"),
	)
}

// writeFile writes a package file, and the DeploymentRuntimeConfig beside it.
func (c *ConvertCmd) writeFile(env *terminal.Env, all *conversion, report *convertReport) error {
	stream := all.Stream()
	layer, err := indexlayer.Build(stream, c.StreamLimits())
	if err != nil {
		return err
	}
	in := image.Input{PackageYAML: stream, Extra: []image.ExtraLayer{layer}, Base: all.base}
	if all.base == nil {
		if in.Platform, err = location.ParsePlatform(c.Platform); err != nil {
			return err
		}
	}
	if p := all.Process; p != nil {
		in.Process = &image.Process{Command: p.Command, Args: p.Args, Env: p.Env, WorkingDir: p.WorkingDir}
	}
	built, err := image.Build(env.Context, in)
	if err != nil {
		return err
	}
	var result oci.Artifact = built
	if layers := documentationLayers(all.of); len(layers) > 0 {
		extensions, err := image.BuildExtensions(layers)
		if err != nil {
			return err
		}
		if result, err = image.AppendExtensions(
			env.Context, beside{built, extensions}, extensions, c.ImageLimits(),
		); err != nil {
			return err
		}
	}
	digest, err := env.WriteArchive(env.Context, c.Output, location.ArtifactOnly{Artifact: result}, c.ImageLimits())
	if err != nil {
		return err
	}
	report.Digest = digest.String()
	return c.writeRuntimeConfig(env, all, strings.TrimSuffix(c.Output, ".xpkg")+"-runtime-config.yaml", report)
}

// writeRuntimeConfig writes the DeploymentRuntimeConfig, if one is needed.
func (c *ConvertCmd) writeRuntimeConfig(env *terminal.Env, all *conversion, file string, report *convertReport) error {
	text, err := all.RuntimeConfig(report.Name)
	if err != nil || text == nil {
		return err
	}
	report.RuntimeConfig = file
	return fileutil.WriteOutput(env.Context, file, fileutil.PublicMode, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// documentationLayers returns the documentation of a package as layers of the extensions manifest.
func documentationLayers(pkg *firstgen.Package) []image.ExtraLayer {
	var layers []image.ExtraLayer
	for _, f := range pkg.Documentation() {
		if n := len(layers); n == 0 || layers[n-1].Annotation != f.Layer {
			layers = append(layers, image.ExtraLayer{Annotation: f.Layer})
		}
		last := &layers[len(layers)-1]
		last.Files = append(last.Files, image.File{Path: f.Path, Data: f.Data})
	}
	return layers
}

// writeFolder writes the files of the package into a new or empty folder: package for `xpkg build`, and extensions for
// `xpkg append`.
func (c *ConvertCmd) writeFolder(env *terminal.Env, all *conversion, report *convertReport) error {
	if entries, err := os.ReadDir(c.Output); err == nil && len(entries) > 0 {
		return archive.ErrCannotWrite.New(nil, "the folder %s is not empty", c.Output).
			WithDo("Name a new folder, or a file that ends in .xpkg.")
	}
	files := map[string][]byte{}
	for _, d := range all.Documents {
		name := "crds/" + d.Name
		if d.Name == "crossplane" {
			name = d.Name
		}
		files["package/"+name+".yaml"] = d.YAML
	}
	for _, f := range all.of.Documentation() {
		files["extensions/"+f.Path] = f.Data
	}
	for name, data := range files {
		if err := writeBelow(c.Output, name, data); err != nil {
			return archive.ErrCannotWrite.New(err, "cannot write %s", filepath.Join(c.Output, name))
		}
	}
	return c.writeRuntimeConfig(env, all, filepath.Join(c.Output, "runtime-config.yaml"), report)
}

func writeBelow(dir, name string, data []byte) error {
	if !fs.ValidPath(name) {
		return fs.ErrInvalid
	}
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // The files of a package are public.
		return err
	}
	return os.WriteFile(file, data, fileutil.PublicMode)
}

// statedProvider is a value of --provides: the package that defines a CRD, or all CRDs of a group.
type statedProvider struct {
	text string
	crd  firstgen.CRDReference
	dependency.Dependency
}

// matches reports whether the package is stated for a required CRD.
func (p statedProvider) matches(want firstgen.CRDReference) bool {
	version := p.crd.Version == "" || want.Version == "" || p.crd.Version == want.Version
	return p.crd.Group == want.Group && version && (p.crd.Plural == "*" || p.crd.Plural == want.Plural)
}

// statedProviders are the values of --provides. The first one that matches a CRD applies.
type statedProviders []statedProvider

// parseProvides parses the values of --provides: CRD=REPOSITORY@CONSTRAINT, where the CRD is PLURAL.GROUP[/VERSION].
func parseProvides(values []string) (statedProviders, error) {
	var out statedProviders
	for _, v := range values {
		crd, rest, _ := strings.Cut(v, "=")
		repository, constraint, _ := strings.Cut(rest, "@")
		ref, ok := firstgen.ParseCRDReference(crd)
		if _, err := oci.ParseReference(repository+":latest", oci.ParseOptions{}); !ok || err != nil ||
			version.CheckConstraint(constraint, true) != nil {
			return nil, terminal.ErrUsage.New(nil, "--provides %s is not of the form CRD=REPOSITORY@CONSTRAINT", v).
				WithDo("Write it in quotes, as in 'clusters.compute.acme.io=ghcr.io/acme/compute@>=v1.0.0'.")
		}
		out = append(out, statedProvider{v, ref, dependency.Dependency{Package: repository, Constraint: constraint}})
	}
	return out, nil
}

// of returns the package that is stated for a CRD.
func (all statedProviders) of(want firstgen.CRDReference) (dependency.Dependency, bool) {
	at := slices.IndexFunc(all, func(p statedProvider) bool { return p.matches(want) })
	if at < 0 {
		return dependency.Dependency{}, false
	}
	return all[at].Dependency, true
}

// checkUsed fails if a package is stated for a CRD that is not required, such as a misspelled one.
func (all statedProviders) checkUsed(required []firstgen.CRDReference) error {
	for _, p := range all {
		if slices.ContainsFunc(required, p.matches) {
			continue
		}
		advice := "Remove it."
		if len(required) > 0 {
			names := make([]string, len(required))
			for i, r := range required {
				names[i] = r.String()
			}
			advice = "Remove it, or name a CRD that the package requires: " + wording.Few(names, maxRequiredInText, ", ") + "."
		}
		return terminal.ErrUsage.New(nil, "--provides %s: the package does not require %s", p.text, p.crd).
			WithDo("%s", advice)
	}
	return nil
}

// maxRequiredInText limits the CRDs in an error.
const maxRequiredInText = 10
