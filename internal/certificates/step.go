package certificates

import (
	"crypto/x509"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// apply writes the result of a step into a Secret.
func (s *Store) apply(v *view, step Step, secret *corev1.Secret) error {
	switch step.Action {
	case Publish:
		s.publish(v, secret)
		return nil
	case Issue, Own:
		return s.fill(v, step, secret)
	default:
		ca, err := s.changed(v, step)
		if err != nil {
			return fmt.Errorf("cannot create a CA: %w", err)
		}
		return ca.write(secret, v.now)
	}
}

// changed returns the CA after a step.
func (s *Store) changed(v *view, step Step) (CA, error) {
	ca := v.ca
	ca.Trusted = slices.Clone(ca.Trusted)
	ca.forget(step.Action)
	switch step.Action {
	case Create, Announce:
		made, err := newSigner(v.now, orDefault(s.AuthorityValidity, defaultAuthorityValidity), s.Random)
		if err != nil {
			return ca, err
		}
		if step.Action == Create {
			ca.Current = made
		} else {
			ca.Next, ca.Rotate = made, false
		}
	case Restore:
		ca.Current = &Signer{Certificate: step.Certificates[0], Key: ca.Orphan}
	case Adopt:
		ca.Trusted = append(ca.Trusted, step.Certificates...)
	case MarkCarried:
		ca.Carried = Mark{fingerprint(ca.Bundle(v.now)...), v.now}
	case Promote:
		ca.Trusted = append(ca.Trusted, ca.Current.Certificate)
		ca.Current, ca.Next = ca.Next, nil
	case Unmark:
		ca.Carried = Mark{}
	case MarkReplaced:
		ca.Replaced = Mark{fingerprint(ca.Current.Certificate), v.now}
	case Retire:
		ca.Trusted = slices.DeleteFunc(
			ca.Trusted, func(c *x509.Certificate) bool { return slices.ContainsFunc(step.Certificates, c.Equal) },
		)
	}
	return ca, nil
}

// forget removes the marks that a step invalidates, so that they do not become valid again when the same bundle
// returns.
func (ca *CA) forget(action Action) {
	switch action {
	case MarkCarried, MarkReplaced, Unmark:
	case Promote:
		// The bundle is the same; another CA signs.
		ca.Replaced = Mark{}
	default:
		ca.Carried, ca.Replaced = Mark{}, Mark{}
	}
}

func (s *Store) publish(v *view, secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[KeyBundle] = bundlePEM(v.ca.Bundle(v.now))
}

// fill writes the owners and, if the step issues one, the certificate.
func (s *Store) fill(v *view, step Step, secret *corev1.Secret) error {
	leaf := v.leaves[slices.IndexFunc(v.leaves, func(l Leaf) bool { return l.Secret == step.Secret })]
	if leaf.Required != nil {
		secret.OwnerReferences = leaf.Required.owners(secret.OwnerReferences)
	}
	if step.Action == Own {
		return nil
	}
	r := request{validity: orDefault(s.LeafValidity, defaultLeafValidity)}
	if leaf.Required != nil {
		r.usage, r.names = leaf.Required.Usage, leaf.Required.DNSNames
	} else {
		r.usage, r.names = usageOf(leaf.Certificate), leaf.Certificate.DNSNames
	}
	certificate, key, err := v.ca.Current.issue(v.now, r, s.Random)
	if err != nil {
		return ErrAuthority.New(err, "cannot issue the certificate for Secret %s", step.Secret)
	}
	s.publish(v, secret)
	secret.Data[KeyCertificate], secret.Data[keyPrivate] = certificate, key
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[labelCertificate] = string(r.usage)
	return nil
}
