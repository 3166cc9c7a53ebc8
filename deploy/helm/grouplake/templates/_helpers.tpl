{{/* Labels of every resource. */}}
{{- define "grouplake.labels" -}}
{{ include "grouplake.selector" . }}
app.kubernetes.io/part-of: grouplake
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Labels by which pods are selected. */}}
{{- define "grouplake.selector" -}}
app.kubernetes.io/name: grouplake
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "grouplake.fullname" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "grouplake.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Folder of the tables. */}}
{{- define "grouplake.tables" -}}
{{ .Values.tables | default (printf "/data/%s" .Values.cluster) }}
{{- end }}

{{/* Parts of a pod that are the same in all: call with (dict "root" $). The configuration is in the checksum: a change restarts. */}}
{{- define "grouplake.podMetadata" -}}
labels:
  {{- include "grouplake.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
annotations:
  checksum/configuration: {{ printf "%s%s" .root.Values.configuration .root.Values.alerts.rules | sha256sum }}
{{- end }}

{{- define "grouplake.podSpec" -}}
serviceAccountName: {{ include "grouplake.fullname" .root }}
automountServiceAccountToken: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and (not .root.Values.tables) (eq .root.Values.persistence.accessMode "ReadWriteOnce") }}
# the volume is mounted on one node: the first pod chooses it, all others follow
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "grouplake.selector" .root | nindent 12 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 185
  runAsGroup: 185
  fsGroup: 185
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: tables
    {{- if .root.Values.tables }}
    emptyDir: {sizeLimit: 1Gi}
    {{- else }}
    persistentVolumeClaim:
      claimName: {{ .root.Values.persistence.existingClaim | default (printf "%s-tables" (include "grouplake.fullname" .root)) }}
    {{- end }}
  - name: configuration
    configMap: {name: {{ include "grouplake.fullname" .root }}}
  - name: secrets
    secret: {secretName: {{ .root.Values.secret }}, defaultMode: 0440}
  - name: tmp
    emptyDir: {sizeLimit: {{ .part.tmpSize }}}
{{- end }}

{{- define "grouplake.container" -}}
image: {{ include "grouplake.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  - {name: CREDENTIALS_DIRECTORY, value: /credentials}
  {{- with .root.Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources:
  {{- toYaml .part.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tables, mountPath: /data{{ if .readOnly }}, readOnly: true{{ end }}}
  - {name: configuration, mountPath: /etc/grouplake, readOnly: true}
  - {name: secrets, mountPath: /credentials, readOnly: true}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{/* Arguments of the job of both modes. */}}
{{- define "grouplake.runArgs" -}}
- run
- --source={{ .Values.source }}
- --tables={{ include "grouplake.tables" . }}
- --conf=/etc/grouplake/grouplake.toml
{{- end }}
