package author

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
)

const (
	// templatesFolder is the folder of the templates in the image of a function, and templatesVariable tells
	// function-go-templating where it is. The Crossplane CLI uses the same.
	templatesFolder   = "src"
	templatesVariable = "FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE=/" + templatesFolder

	// annotationBaseName and annotationBaseDigest name the image on which another one is based (OCI image specification,
	// "Pre-Defined Annotation Keys").
	annotationBaseName   = "org.opencontainers.image.base.name"
	annotationBaseDigest = "org.opencontainers.image.base.digest"
)

// template is a file with templates.
type template struct {
	path string
	text []byte
}

// templates reads the templates in the folder of a function, in the order in which function-go-templating reads them.
// Hidden files are left out, as it leaves them out.
func templates(dir string) ([]template, error) {
	root, err := fileutil.OpenFolder(dir)
	if err != nil {
		return nil, xpkg.ErrFolderNotFound.New(err, "cannot read the folder of a function")
	}
	defer root.Close()
	var out []template
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(path.Base(name), ".")
		switch {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(root.FS(), name)
		out = append(out, template{name, text})
		return err
	})
	if err != nil {
		return nil, xpkg.ErrUnreadableFile.New(err, "cannot read the templates in %s", dir)
	}
	return out, nil
}

// templateFindings returns the mistake in the syntax of the templates in the folder of a function. The function reads
// them as one text.
func templateFindings(dir string) ([]xpkg.Finding, error) {
	files, err := templates(dir)
	if err != nil {
		return nil, err
	}
	var all strings.Builder
	var starts []int
	for _, f := range files {
		starts = append(starts, strings.Count(all.String(), "\n"))
		all.Write(f.text)
		all.WriteString("\n---\n")
	}
	line, problem := validation.TemplateProblem(all.String(), "", "")
	if problem == "" {
		return nil, nil
	}
	found := xpkg.Finding{
		Code: validation.ErrInvalidTemplate, Severity: xpkg.Error, Message: problem, Fix: validation.ErrInvalidTemplate.Fix,
	}
	for i, f := range files {
		if line > starts[i] {
			found.File = filepath.ToSlash(filepath.Join(dir, f.path))
			found.Line = min(line-starts[i], max(1, strings.Count(string(f.text), "\n")))
		}
	}
	return []xpkg.Finding{found}, nil
}

// goTemplates returns what makes the image of function-go-templating run the templates in the folder of a function.
func (b *projectBuild) goTemplates(
	env *terminal.Env, c *BuildCmd, f project.Function, platform oci.Platform,
) (func(*image.Input), error) {
	files, err := templates(filepath.Join(c.PackageRoot, filepath.FromSlash(f.Folder)))
	if err != nil {
		return nil, err
	}
	base, ref, err := b.templatingImage(env, c, platform)
	if err != nil {
		return nil, err
	}
	return func(in *image.Input) {
		in.Base, in.Process = base, &image.Process{Env: []string{templatesVariable}}
		for _, t := range files {
			in.Files = append(in.Files, image.File{Path: path.Join(templatesFolder, t.path), Data: t.text})
		}
		annotations := map[string]string{
			annotationBaseName: c.GoTemplatingImage, annotationBaseDigest: ref.Digest.String(),
		}
		maps.Copy(annotations, in.Annotations)
		in.Annotations = annotations
	}, nil
}

// templatingImage returns the image of function-go-templating for a platform, without the layers of its package, and
// its reference with the digest.
func (b *projectBuild) templatingImage(
	env *terminal.Env, c *BuildCmd, platform oci.Platform,
) (*image.Image, oci.Reference, error) {
	a, err := b.openTemplating(env, c)
	if err != nil {
		return nil, oci.Reference{}, err
	}
	base, err := image.Load(env.Context, a.Artifact, platform, c.ImageLimits())
	if err == nil {
		base, err = base.WithoutPackage()
	}
	return base, a.ref, err
}

// openTemplating opens the image of function-go-templating, once for all functions and platforms.
func (b *projectBuild) openTemplating(env *terminal.Env, c *BuildCmd) (*pushedPackage, error) {
	if b.templating != nil {
		return b.templating, nil
	}
	a, ref, done, err := openRegistryImage(env, c.TransferFlags, c.GoTemplatingImage)
	if err != nil {
		return nil, err
	}
	before := b.done
	b.done = func() error { return errors.Join(before(), done()) }
	b.templating = &pushedPackage{Artifact: a, ref: ref}
	return b.templating, nil
}
