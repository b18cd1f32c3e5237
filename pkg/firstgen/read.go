package firstgen

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Options configures Read.
type Options struct {
	// Tag is the tag of the image. It becomes the version of the package; a different version in app.yaml is an
	// error. It is empty for a folder.
	Tag string
	// CRDs contains CRDs outside of the folder, for a package in source form; nil if there are none.
	CRDs fs.FS
	// Limits bounds the input, over all files together.
	Limits xpkg.Limits
}

// File names of the format.
const (
	appFile      = "app.yaml"
	installFile  = "install.yaml"
	behaviorFile = "behavior.yaml"
	groupFile    = "group.yaml"
	resourceDir  = "resources"

	crdSuffix      = "crd.yaml"
	resourceSuffix = "resource.yaml"
	uiSchemaSuffix = "ui-schema.yaml"
)

// Read reads and checks the package in fsys, whose root is the folder that contains app.yaml. Symbolic links and
// special files are not read, and reported: as errors in place of app.yaml, install.yaml and behavior.yaml, otherwise
// as warnings. The result does not depend on the order in which fsys lists files.
//
// The error is a refusal with all findings (see [xpkg.Findings]), or the error of a file that cannot be read.
func Read(fsys fs.FS, opts Options) (*Package, error) {
	r := &reader{opts: opts, limits: opts.Limits.WithDefaults()}
	files, err := r.readFiles(fsys)
	if err != nil {
		return nil, err
	}
	var extra []file
	if opts.CRDs != nil {
		if extra, err = r.readFiles(opts.CRDs); err != nil {
			return nil, err
		}
	}
	return r.finish(files, extra)
}

// ReadFiles is like [Read] for the files of a folder by their paths, with slashes.
func ReadFiles(files map[string][]byte, opts Options) (*Package, error) {
	r := &reader{opts: opts, limits: opts.Limits.WithDefaults()}
	var relevant []file
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if !IsRelevant(p) {
			continue
		}
		r.bytes += len(files[p])
		switch {
		case r.bytes > r.limits.StreamBytes:
			return nil, xpkg.ErrStreamTooLarge.New(nil, "%s", r.limits.Exceeded(&r.limits.StreamBytes))
		case len(relevant) >= r.limits.Documents:
			return nil, xpkg.ErrStreamTooLarge.New(nil, "%s", r.limits.Exceeded(&r.limits.Documents))
		case strings.Count(p, "/") > r.limits.Depth:
			return nil, xpkg.ErrYAMLLimit.New(nil, "the folder of %q is nested more than %d levels deep", p, r.limits.Depth)
		}
		relevant = append(relevant, file{p, files[p]})
	}
	return r.finish(relevant, nil)
}

// finish returns the package of the files, or a refusal with all findings.
func (r *reader) finish(files, extra []file) (*Package, error) {
	pkg := r.assemble(files, extra)
	slices.SortStableFunc(r.findings, func(a, b xpkg.Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, f := range r.findings {
		if f.Severity == xpkg.Error {
			return nil,
				f.Code.New(&xpkg.Refusal{Findings: r.findings}, "read the package of the first generation").WithDo("%s", f.Fix)
		}
	}
	pkg.Findings = r.findings
	return pkg, nil
}

// A file is a file of the package with a known role.
type file struct {
	path string
	data []byte
}

func (f file) dir() string  { return path.Dir(f.path) }
func (f file) base() string { return path.Base(f.path) }

type reader struct {
	opts     Options
	limits   xpkg.Limits
	bytes    int
	findings []xpkg.Finding
}

// report adds a finding about a line of a file; the line is 0 if the finding concerns the whole file.
func (r *reader) report(severity xpkg.Severity, code errcode.Code, file string, line int, format string, args ...any) {
	r.findings = append(r.findings, xpkg.Finding{
		Code: code, Severity: severity, Message: fmt.Sprintf(format, args...), File: file, Line: line, Fix: code.Fix,
	})
}

// readFiles returns the regular files of fsys, ordered by path.
func (r *reader) readFiles(fsys fs.FS) ([]file, error) {
	var out []file
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.Count(p, "/") > r.limits.Depth:
			return xpkg.ErrYAMLLimit.New(nil, "the folder %q is nested more than %d levels deep", p, r.limits.Depth)
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0 && !IsRelevant(p) && !isFile(fsys, p):
			r.report(
				xpkg.Warning, xpkg.ErrUnreadableFile, p, 0,
				"it is a symbolic link: the files of a linked folder are not part of the package",
			)
			return nil
		case !IsRelevant(p):
			return nil
		case !d.Type().IsRegular():
			severity := xpkg.Warning
			if slices.Contains([]string{appFile, installFile, behaviorFile}, p) {
				severity = xpkg.Error // Without the file it would be another package.
			}
			r.report(severity, xpkg.ErrUnreadableFile, p, 0, "the file is not a regular file, and is not part of the package")
			return nil
		case len(out) >= r.limits.Documents:
			return xpkg.ErrStreamTooLarge.New(nil, "%s", r.limits.Exceeded(&r.limits.Documents))
		}
		data, err := r.readFile(fsys, p)
		if err != nil {
			return err
		}
		out = append(out, file{p, data})
		return nil
	})
	if err != nil {
		var e *errcode.Error
		if errors.As(err, &e) {
			return nil, err
		}
		return nil, xpkg.ErrUnreadableFile.New(err, "read the package of the first generation")
	}
	return out, nil
}

func (r *reader) readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	left := r.limits.StreamBytes - r.bytes
	data, err := io.ReadAll(io.LimitReader(f, int64(left)+1))
	if err != nil {
		return nil, err
	}
	if r.bytes += len(data); len(data) > left {
		return nil, xpkg.ErrStreamTooLarge.New(nil, "%s", r.limits.Exceeded(&r.limits.StreamBytes))
	}
	return data, nil
}

// IsRelevant reports whether a file with the given path can belong to a package.
func IsRelevant(name string) bool {
	base := path.Base(name)
	switch strings.ToLower(path.Ext(base)) {
	case ".yaml", ".yml":
		return true
	}
	return isIcon(base) || misnamedIcon(base)
}

// hasRole reports whether a file with the given path is read.
func hasRole(name string) bool {
	base := path.Base(name)
	switch {
	case slices.Contains([]string{appFile, installFile, behaviorFile, uiSchemaSuffix}, name), isIcon(base):
		return true
	case !strings.HasPrefix(name, resourceDir+"/"):
		return false
	}
	return base == groupFile || hasSuffix(base, resourceSuffix) || hasSuffix(base, uiSchemaSuffix) ||
		hasSuffix(base, crdSuffix)
}

// usualName returns the path of a file with the usual extension, and with the words of the format in lower case.
func usualName(name string) string {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for _, word := range []string{"app", "install", "behavior", "group", "crd", "resource", "ui-schema", "icon"} {
		if at := len(stem) - len(word); at >= 0 && strings.EqualFold(stem[at:], word) {
			stem = stem[:at] + word
		}
	}
	switch ext = strings.ToLower(ext); ext {
	case ".yml":
		ext = ".yaml"
	case ".jpeg":
		ext = ".jpg"
	}
	return stem + ext
}

// checkName reports a file that is not read, but would be under another name.
func (r *reader) checkName(f file, isTaken func(string) bool) {
	name := usualName(f.path)
	inResources := path.Join(resourceDir, path.Base(name))
	switch {
	case misnamedIcon(f.base()) && !isIcon(path.Base(name)):
		r.report(xpkg.Warning, ErrMisnamedFile, f.path, 0, "the file is not read: icons have the format svg, png, jpg or gif")
		return
	case hasRole(name):
	case hasRole(inResources) && path.Base(name) != uiSchemaSuffix && !isIcon(path.Base(name)):
		name = inResources
	default:
		return
	}
	advice := "rename it to " + shown(name)
	if isTaken(name) {
		advice = shown(name) + " is read instead"
	}
	r.report(xpkg.Warning, ErrMisnamedFile, f.path, 0, "the file is not read: %s", advice)
}

// assemble returns the package of the files.
func (r *reader) assemble(files, extra []file) *Package {
	pkg := &Package{}
	meta := &metadata{}
	var crds []file
	for _, f := range files {
		base, inResources := f.base(), f.path == resourceDir || strings.HasPrefix(f.path, resourceDir+"/")
		switch {
		case f.path == appFile:
			pkg.App = r.readApp(f)
		case f.path == installFile:
			pkg.Install = r.readInstall(f)
		case f.path == behaviorFile:
			pkg.Behavior = r.readBehavior(f)
		case f.path == uiSchemaSuffix:
			pkg.UISchema = r.readUISchema(f)
		case isIcon(base):
			icon := r.readIcon(f)
			switch {
			case icon == nil:
			case f.dir() == ".":
				pkg.Icons = append(pkg.Icons, *icon)
			default:
				meta.icons = append(meta.icons, attached[Icon]{f.path, "", *icon})
			}
		case inResources && base == groupFile:
			if g, ok := decodeMeta[GroupMeta](r, f); ok {
				meta.groups = append(meta.groups, attached[GroupMeta]{f.path, "", g})
			}
		case inResources && hasSuffix(base, resourceSuffix):
			if m, ok := decodeMeta[ResourceMeta](r, f); ok {
				m.TitlePlural, m.FormerTitlePlural = cmp.Or(m.TitlePlural, m.FormerTitlePlural), ""
				m.OverviewShort, m.ShortOverview = cmp.Or(m.OverviewShort, m.ShortOverview), ""
				meta.resources = append(meta.resources, attached[ResourceMeta]{f.path, m.ID, m})
			}
		case inResources && hasSuffix(base, uiSchemaSuffix):
			meta.uiSchemas = append(meta.uiSchemas, attached[string]{f.path, "", r.readUISchema(f)})
		case inResources && hasSuffix(base, crdSuffix):
			crds = append(crds, f)
		default:
			r.checkName(f, func(name string) bool {
				return slices.ContainsFunc(files, func(other file) bool { return other.path == name })
			})
		}
	}
	if !slices.ContainsFunc(files, func(f file) bool { return f.path == appFile }) {
		r.report(xpkg.Error, ErrNoApp, appFile, 0, "the file is missing")
	}
	slices.SortStableFunc(pkg.Icons, func(a, b Icon) int { return cmp.Compare(a.preference(), b.preference()) })
	pkg.Resources = r.readResources(crds, extra, meta, pkg.App.Title)
	r.checkBehavior(pkg)
	if len(pkg.Resources) == 0 && pkg.Install == nil && pkg.Behavior == nil && !r.failed() {
		r.report(xpkg.Error, ErrNoResources, resourceDir, 0, "the package contains neither a CRD nor a controller")
	}
	return pkg
}

// failed reports whether there is an error among the findings.
func (r *reader) failed() bool {
	return slices.ContainsFunc(r.findings, func(f xpkg.Finding) bool { return f.Severity == xpkg.Error })
}

// hasSuffix reports whether a file name is suffix, or ends with a separator and suffix.
func hasSuffix(base, suffix string) bool {
	prefix, ok := strings.CutSuffix(base, suffix)
	return ok && (prefix == "" || strings.ContainsAny(prefix[len(prefix)-1:], ".-_"))
}

// documents returns the YAML documents of a file with content. A file that cannot be split is reported.
func (r *reader) documents(f file) []xpkg.Document {
	docs, _ := r.split(f)
	return docs
}

// split returns the documents of a file, and false after reporting that they cannot be read.
func (r *reader) split(f file) ([]xpkg.Document, bool) {
	docs, err := xpkg.Split(f.data, f.path, r.limits)
	if err != nil {
		r.reportError(ErrInvalidMetadata, f.path, 0, err)
		return nil, false
	}
	return docs, true
}

// document returns the only document of a file, and false after reporting that there is no such document.
func (r *reader) document(f file, code errcode.Code) (xpkg.Document, bool) {
	docs, ok := r.split(f)
	switch {
	case !ok:
		return xpkg.Document{}, false
	case len(docs) == 0:
		r.report(xpkg.Error, code, f.path, 0, "the file has no content")
		return xpkg.Document{}, false
	case len(docs) > 1:
		r.report(xpkg.Error, code, f.path, docs[1].Line, "the file contains %d YAML documents, want 1", len(docs))
		return xpkg.Document{}, false
	}
	return docs[0], true
}

// decode decodes the only document of a file into out, and reports whether it could. Unknown fields are reported as
// warnings, everything else as errors with the given code.
func (r *reader) decode(f file, code errcode.Code, out any) bool {
	d, ok := r.document(f, code)
	return ok && r.decodeDocument(d, code, out)
}

func (r *reader) decodeDocument(d xpkg.Document, code errcode.Code, out any) bool {
	text, err := d.JSON()
	if err != nil {
		r.reportError(code, d.File, d.Line, err)
		return false
	}
	unknown, err := kjson.UnmarshalStrict(text, out)
	if err != nil {
		want := reflect.ValueOf(out).Elem()
		text, ok := r.textual(d, text, code, want.Type())
		if !ok {
			return false
		}
		want.SetZero()
		unknown, err = kjson.UnmarshalStrict(text, out)
	}
	if err != nil {
		r.report(xpkg.Error, code, d.File, d.Line, "cannot decode: %v", err)
		return false
	}
	if len(unknown) == 0 {
		return true
	}
	src := sourceOf(d)
	for _, err := range unknown {
		line := d.Line
		var field kjson.FieldError
		if errors.As(err, &field) {
			line = src.line(field.FieldPath())
		}
		r.report(xpkg.Warning, xpkg.ErrUnknownMetaField, d.File, line, "%v", err)
	}
	return true
}

// reportError reports the findings of an error of package xpkg, or the error itself with the given code.
func (r *reader) reportError(code errcode.Code, file string, line int, err error) {
	if findings := xpkg.Findings(err); len(findings) > 0 {
		r.findings = append(r.findings, findings...)
		return
	}
	var e *errcode.Error
	if errors.As(err, &e) {
		code = e.Code
	}
	r.report(xpkg.Error, code, file, line, "%v", err)
}

func decodeMeta[T any](r *reader, f file) (T, bool) {
	var out T
	ok := r.decode(f, ErrInvalidMetadata, &out)
	return out, ok
}

// readUISchema returns the text of a UI schema, which may contain several documents. Its fields are not part of this
// format, so only the YAML syntax is checked.
func (r *reader) readUISchema(f file) string {
	for _, d := range r.documents(f) {
		if _, err := d.JSON(); err != nil {
			r.reportError(ErrInvalidMetadata, f.path, d.Line, err)
		}
	}
	return string(f.data)
}
