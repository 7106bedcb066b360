{{/*
Names within the namespace are fixed: the operator and the rollouts know them, and an installation
has its namespace for itself. Names outside of it end in the namespace, so that several fit.
*/}}

{{- define "wavetank.outsideName" -}}
{{ printf "%s-%s" .name .root.Release.Namespace | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Labels of everything. Arguments: root, component. */}}
{{- define "wavetank.labels" -}}
{{ include "wavetank.selector" . }}
app.kubernetes.io/part-of: wavetank
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "wavetank.selector" -}}
app.kubernetes.io/name: wavetank
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Reference of an image. Arguments: root, image. */}}
{{- define "wavetank.image" -}}
{{- $images := .root.Values.images -}}
{{- $path := printf "%s/%s" $images.registry .image.name -}}
{{- if .image.digest -}}
{{ printf "%s@%s" $path .image.digest }}
{{- else -}}
{{ printf "%s:%s" $path (include "wavetank.tag" .root) }}
{{- end }}
{{- end }}

{{- define "wavetank.tag" -}}
{{ .Values.images.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What operator and store share of a Pod: the restricted Pod Security Standard. */}}
{{- define "wavetank.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "wavetank.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end }}

{{/* Where a Pod may go. Argument: values of operator or store. */}}
{{- define "wavetank.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* What the operator does in the namespaces that it serves; each verb is one call of its code. */}}
{{- define "wavetank.operatorRules" -}}
- apiGroups: [wavetank.dev]
  resources: [worlds, benchmarks, runs]
  verbs: [get, list, watch]
- apiGroups: [wavetank.dev]
  resources: [worlds/status, benchmarks/status, runs/status]
  verbs: [patch]
# OpenShift asks for it of whoever sets blockOwnerDeletion.
- apiGroups: [wavetank.dev]
  resources: [worlds/finalizers, benchmarks/finalizers, runs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete, get, list, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, delete, get, list, watch]
# Plans, ledgers and results, and the bundles that Worlds name.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, get, list, patch]
# Tokens are applied (which may create) and never read back.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
