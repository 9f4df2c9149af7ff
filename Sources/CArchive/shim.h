#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/// Input from a pipe: the bytes that were read to recognise it, then the rest.
struct apnscope_archive_input {
  int descriptor;
  size_t length;
  unsigned char *beginning;
  unsigned char block[65536];
};

static inline la_ssize_t apnscope_archive_more(struct archive *archive, void *data, const void **block) {
  struct apnscope_archive_input *input = (struct apnscope_archive_input *)data;
  (void)archive;
  if (input->length > 0) {
    size_t length = input->length;
    input->length = 0;
    *block = input->beginning;
    return (la_ssize_t)length;
  }
  *block = input->block;
  return read(input->descriptor, input->block, sizeof input->block);
}

static inline int apnscope_archive_end(struct archive *archive, void *data) {
  struct apnscope_archive_input *input = (struct apnscope_archive_input *)data;
  (void)archive;
  free(input->beginning);
  free(input);
  return ARCHIVE_OK;
}

/// Opens an archive, or a compressed file, whose formats are those named here: none of them starts a program. NULL when
/// there is no memory; otherwise `status` is ARCHIVE_OK, or tells that it cannot be opened.
static inline struct archive *apnscope_archive_open(
    int descriptor, int is_file, const void *beginning, size_t length, int *status) {
  struct archive *archive = archive_read_new();
  if (archive == NULL) return NULL;
  archive_read_support_filter_bzip2(archive);
  archive_read_support_filter_gzip(archive);
  archive_read_support_filter_lzip(archive);
  archive_read_support_filter_lzma(archive);
  archive_read_support_filter_xz(archive);
  archive_read_support_filter_zstd(archive);
  archive_read_support_format_7zip(archive);
  archive_read_support_format_tar(archive);
  archive_read_support_format_zip(archive);
  archive_read_support_format_raw(archive);
  if (is_file) {
    lseek(descriptor, 0, SEEK_SET);
    *status = archive_read_open_fd(archive, descriptor, 65536);
    return archive;
  }
  struct apnscope_archive_input *input = (struct apnscope_archive_input *)malloc(sizeof *input);
  unsigned char *copy = (unsigned char *)malloc(length > 0 ? length : 1);
  if (input == NULL || copy == NULL) {
    free(input);
    free(copy);
    archive_read_free(archive);
    return NULL;
  }
  memcpy(copy, beginning, length);
  input->descriptor = descriptor;
  input->beginning = copy;
  input->length = length;
  *status = archive_read_open(archive, input, NULL, apnscope_archive_more, apnscope_archive_end);
  return archive;
}
