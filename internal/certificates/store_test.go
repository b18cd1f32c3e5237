package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

func TestNewCertificates(t *testing.T) {
	w := newSimulation(t)
	issued, next := w.ensure(wanted...)
	w.connectAll(wanted)
	if want := start.Add(-backdate + (defaultLeafValidity+backdate)/3*2); !next.Equal(want) {
		t.Errorf("next at %s, want %s", next, want)
	}
	serials := map[string]bool{}
	for _, x := range wanted {
		s := w.secret(x.Secret)
		if diff := cmp.Diff(issued[x.Secret], Issued{
			Cert: s.Data[KeyCertificate], Key: s.Data[keyPrivate], Bundle: s.Data[KeyBundle],
		}); diff != "" {
			t.Error(diff)
		}
		c := firstCertificate(s.Data[KeyCertificate])
		if diff := cmp.Diff(x.DNSNames, c.DNSNames); diff != "" || !c.NotAfter.Equal(start.Add(defaultLeafValidity)) {
			t.Errorf("%s: until %s %s", x.Secret, c.NotAfter, diff)
		}
		serials[c.SerialNumber.String()] = true
	}
	if len(serials) != len(wanted) {
		t.Error("serial numbers are not distinct")
	}
	// Crossplane reads the authority's key like this and no other way.
	block, _ := pem.Decode(w.secret(RootSecret).Data[keyPrivate])
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err != nil || block.Type != "RSA PRIVATE KEY" {
		t.Errorf("Crossplane cannot read the authority's key: %v", err)
	}
	bundle, err := w.store().Bundle(t.Context())
	if err != nil || !bytes.Equal(bundle, w.secret(RootSecret).Data[KeyCertificate]) {
		t.Errorf("the bundle is not the authority's certificate: %v", err)
	}
}

func TestBundleCreatesTheCA(t *testing.T) {
	w := newSimulation(t)
	bundle, err := w.store().Bundle(t.Context())
	if err != nil || len(certificatesIn(bundle)) != 1 || !certificatesIn(bundle)[0].IsCA {
		t.Errorf("%s, %v", bundle, err)
	}
}

func TestNothingToDoCostsNoWrite(t *testing.T) {
	w := ourWorld(t)
	w.reads, w.writes = 0, 0
	w.ensure(wanted...)
	if w.writes != 0 || w.reads != len(wanted)+1 {
		t.Errorf("%d writes and %d reads", w.writes, w.reads)
	}
}

func TestNames(t *testing.T) {
	if diff := cmp.Diff(
		[]string{"svc", "svc.ns", "svc.ns.svc", "svc.ns.svc.cluster.local"}, ServerNames("svc", "ns"),
	); diff != "" {
		t.Error(diff)
	}
}

// A new name, as of a Service that was renamed, is in the certificate at once; a name
// less is none to bother about.
func TestNamesAreAdded(t *testing.T) {
	w := newSimulation(t)
	w.ensure(wanted[:2]...)
	renamed := wanted[0]
	renamed.DNSNames = ServerNames("other", ns)
	issued, _ := w.ensure(renamed)
	if err := firstCertificate(issued[renamed.Secret].Cert).VerifyHostname("other." + ns + ".svc"); err != nil {
		t.Error(err)
	}
	w.connectAll(wanted[:2])
	w.writes = 0
	renamed.DNSNames = renamed.DNSNames[:1]
	if w.ensure(renamed); w.writes != 0 {
		t.Error("a certificate was issued for fewer names")
	}
}

// requester returns the active revision of a package with the revisions 1 and 2.
func requester(kind, pkg, revision string) plan.Requester {
	owner := func(kind, name string) plan.Owner {
		return plan.Owner{APIVersion: "pkg.crossplane.io/v1", Kind: kind, Name: name, UID: types.UID("uid-" + name)}
	}
	return plan.Requester{Package: owner(kind, pkg), Revision: owner(kind+"Revision", revision), Siblings: []string{
		pkg + "-1", pkg + "-2",
	}}
}

func TestOwnersHandOver(t *testing.T) {
	w := newSimulation(t)
	first, second := wanted[0], wanted[0]
	first.Owner, second.Owner = requester("Provider", "a", "a-1"), requester("Provider", "a", "a-2")
	w.ensure(first)
	before := w.secret(first.Secret)
	w.writes = 0
	w.ensure(second)
	after := w.secret(first.Secret)
	if diff := cmp.Diff(before.Data, after.Data); diff != "" {
		t.Errorf("the certificate changed with its owner")
	}
	want := []metav1.OwnerReference{second.Owner.Revision.Reference(true), second.Owner.Package.Reference(false)}
	if diff := cmp.Diff(want, after.OwnerReferences); diff != "" || w.writes != 1 {
		t.Errorf("%d writes %s", w.writes, diff)
	}
	if w.ensure(second); w.writes != 1 {
		t.Error("owners are written again")
	}
	// Objects of a backup have the UIDs of another cluster.
	second.Owner.Revision.UID = "restored"
	w.ensure(second)
	if got := w.secret(first.Secret).OwnerReferences; len(got) != 2 || got[0].UID != "restored" {
		t.Errorf("%+v", got)
	}
}

// A package named as Crossplane core gets neither the certificates of core nor Secrets with their names.
func TestSecretsOfCoreAreNotThoseOfAPackage(t *testing.T) {
	for _, name := range []string{"crossplane-tls-server", "crossplane-tls-client"} {
		for _, exists := range []bool{true, false} {
			w := newSimulation(t)
			want := wanted[0]
			want.Secret = name
			if exists {
				w.ensure(want)
			}
			want.Owner = requester("Provider", "crossplane", "crossplane-1")
			issued, _, err := w.store().Issue(t.Context(), []Requirement{want})
			if len(issued) > 0 || !errors.Is(err, ErrSecretTaken) || !strings.Contains(err.Error(), "Crossplane core") {
				t.Errorf("%s exists: %t; %d issued, %v", name, exists, len(issued), err)
			}
			if exists && len(w.secret(name).OwnerReferences) > 0 {
				t.Errorf("%s has the owners %v", name, w.secret(name).OwnerReferences)
			}
		}
	}
}

// A certificate is neither written into a Secret of another owner nor read from it.
func TestSecretsOfOtherOwners(t *testing.T) {
	other := requester("Function", "provider-a", "provider-a-1")
	release := metav1.OwnerReference{
		APIVersion: "example.org/v1", Kind: "Release", Name: "tools", UID: "helm", Controller: new(true),
	}
	for name, owners := range map[string][]metav1.OwnerReference{
		"FunctionRevision/provider-a-1": {other.Revision.Reference(true), other.Package.Reference(false)},
		"Function/provider-a":           {other.Package.Reference(false)},
		"Release/tools":                 {release},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulation(t)
			theirs := wanted[0]
			theirs.Owner = other
			w.ensure(theirs)
			held := w.secret(theirs.Secret)
			held.OwnerReferences = owners
			if err := w.client.Update(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			want := wanted[0]
			want.Owner = requester("Provider", "provider-a", "provider-a-1")
			issued, _, err := w.store().Issue(t.Context(), []Requirement{want, wanted[1]})
			if _, ok := issued[want.Secret]; ok || !errors.Is(err, ErrSecretTaken) || !strings.Contains(err.Error(), name) {
				t.Errorf("issued %t, %v", ok, err)
			}
			if _, ok := issued[wanted[1].Secret]; !ok {
				t.Error("the other certificate was not issued")
			}
			if now := w.secret(want.Secret); now.ResourceVersion != held.ResourceVersion {
				t.Errorf("the Secret was written: %v", now.OwnerReferences)
			}
		})
	}
}

func TestRenewal(t *testing.T) {
	w := newSimulation(t)
	_, next := w.ensure(wanted...)
	w.clock.Set(next.Add(-time.Second))
	w.writes = 0
	w.ensure(wanted...)
	if w.writes != 0 {
		t.Error("renewed too early")
	}
	w.clock.Set(next)
	w.ensure(wanted...)
	if w.writes != len(wanted) {
		t.Errorf("%d writes", w.writes)
	}
	w.connectAll(wanted)
	// A manager that was away for long finds everything expired.
	w.clock.Set(next.Add(200 * day))
	w.ensure(wanted...)
	w.clock.Set(w.clock.Now().Add(w.overlap))
	w.connectAll(wanted)
}

// For fifteen years every server and every client can talk with every other at every
// moment, while certificates are renewed and the authority is replaced.
func TestNoConnectionFailsInFifteenYears(t *testing.T) {
	if testing.Short() {
		t.Skip("lets fifteen years pass: skipped with -short")
	}
	w := newSimulation(t)
	store := w.store()
	announced := map[string]bool{}
	w.years(start.Add(15*365*day), wanted, func() (time.Time, error) {
		_, next, err := store.Ensure(t.Context(), wanted)
		announced[string(w.secret(RootSecret).Data[KeyCertificate])] = true
		return next, err
	})
	if len(announced) < 3 {
		t.Errorf("%d authorities in fifteen years", len(announced))
	}
	if s := w.secret(RootSecret); len(s.Data) != 2 {
		t.Errorf("left over in the authority's Secret: %d keys", len(s.Data))
	}
	t.Logf("%d authorities, %d writes, %d pairs talked", len(announced), w.writes, len(w.talked))
}

// Packages are reconciled one by one, each with its own certificates only.
func TestEachPackageForItself(t *testing.T) {
	w := newSimulation(t)
	store := w.store()
	store.AuthorityValidity = 400 * day
	turn := 0
	due := make([]time.Time, len(wanted))
	w.years(start.Add(2*365*day), wanted, func() (time.Time, error) {
		var next time.Time
		for i := range wanted {
			if w.clock.Now().Before(due[i]) {
				continue
			}
			var err error
			if _, due[i], err = store.Ensure(t.Context(), wanted[i:i+1]); err != nil {
				return next, err
			}
			turn++
			w.connectAllSoFar()
		}
		for _, d := range due {
			if next.IsZero() || d.Before(next) {
				next = d
			}
		}
		return next, nil
	})
	if len(w.versions[RootSecret]) < 5 {
		t.Error("the authority was not replaced")
	}
}

// connectAllSoFar leaves out runtimes without a certificate.
func (w *simulation) connectAllSoFar() {
	w.t.Helper()
	var have []Requirement
	for _, x := range wanted {
		if len(w.versions[x.Secret]) > 0 {
			have = append(have, x)
		}
	}
	w.connectAll(have)
}

func TestRequestedRotation(t *testing.T) {
	w := ourWorld(t)
	old := w.secret(RootSecret).Data[KeyCertificate]
	w.edit(RootSecret, func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, AnnotationRotate, "now") })
	w.years(start.Add(5*w.overlap), wanted, func() (time.Time, error) {
		_, next, err := w.store().Ensure(t.Context(), wanted)
		return next, err
	})
	s := w.secret(RootSecret)
	if bytes.Equal(old, s.Data[KeyCertificate]) || len(s.Data) != 2 || len(s.Annotations) != 0 {
		t.Errorf("the authority was not replaced once: %d keys, %v", len(s.Data), s.Annotations)
	}
	for _, x := range wanted {
		if diff := cmp.Diff(string(s.Data[KeyCertificate]), string(w.secret(x.Secret).Data[KeyBundle])); diff != "" {
			t.Errorf("%s trusts another authority", x.Secret)
		}
	}
}

// A new CA signs nothing, and no former CA is removed, while a runtime may still use the
// former content of the Secrets.
func TestRotationWaitsForUnsettledUsers(t *testing.T) {
	w := ourWorld(t)
	w.edit(RootSecret, func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, AnnotationRotate, "") })
	store := w.store()
	settled := false
	store.Settled = func(context.Context, []byte) (bool, error) { return settled, nil }
	for range 10 {
		_, next, err := store.Ensure(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Set(next)
	}
	if s := w.secret(RootSecret); s.Data[keyNextCertificate] == nil {
		t.Error("the next authority was promoted")
	}
	settled = true
	_, next, err := store.Ensure(t.Context(), wanted)
	if err != nil || w.secret(RootSecret).Data[keyTrusted] == nil {
		t.Fatalf("not promoted: %v", err)
	}
	settled = false
	w.clock.Set(next.Add(w.overlap))
	if _, _, err := store.Ensure(t.Context(), wanted); err != nil || w.secret(RootSecret).Data[keyTrusted] == nil {
		t.Errorf("the former authority was forgotten: %v", err)
	}
}

// A certificate that no package requests, such as one of Crossplane, takes part in a
// rotation.
func TestRotationRenewsCertificatesOfOtherPackages(t *testing.T) {
	w := ourWorld(t)
	w.edit(RootSecret, func(s *corev1.Secret) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, AnnotationRotate, "") })
	w.years(start.Add(5*w.overlap), wanted, func() (time.Time, error) {
		_, next, err := w.store().Ensure(t.Context(), wanted[:1])
		return next, err
	})
	c := firstCertificate(w.secret(wanted[3].Secret).Data[KeyCertificate])
	if err := c.CheckSignatureFrom(firstCertificate(w.secret(RootSecret).Data[KeyCertificate])); err != nil ||
		c.DNSNames[0] != "crossplane" {
		t.Errorf("it was left behind: %v", err)
	}
}

// A certificate that turns up during a change, with the authorities of before, gets
// as much time as all others had.
func TestRotationWaitsForCertificatesOfFormerCAs(t *testing.T) {
	w := newCrossplaneSimulation(t)
	late := Requirement{Secret: v1.TLSClientSecretName("late"), Usage: Client, DNSNames: []string{"late"}}
	w.ensure(wanted...)
	w.askForRotation()
	_, next := w.ensure(wanted...)
	w.clock.Set(next.Add(-time.Second))
	if err := w.client.Create(t.Context(), newCrossplane(t, 0).leaf(t, late)); err != nil {
		t.Fatal(err)
	}
	w.clock.Set(next)
	w.years(next.Add(5*w.overlap), append(wanted, late), func() (time.Time, error) {
		_, next, err := w.store().Ensure(t.Context(), wanted)
		return next, err
	})
	w.rotatedOnce()
}
