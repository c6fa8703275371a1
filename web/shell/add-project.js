/** The dialog that adds a project. Its path field is completed with folders of the server's file system. */

import { h, part } from '../shared/dom.js';

/**
 * @typedef {import('./socket.js').Socket} Socket
 * @typedef {import('../types/wire.js').FolderSuggestion} FolderSuggestion
 */

/** Debounce of completion requests while the user types. */
const TYPING_PAUSE_MS = 60;

/**
 * @param {Socket} socket
 * @param {(projectId: string) => void} onAdded
 */
export function startAddProject(socket, onAdded) {
  const dialog = part('add-dialog', HTMLDialogElement);
  const form = part('add-form', HTMLFormElement);
  const field = part('add-path', HTMLInputElement);
  const list = part('add-folders', HTMLElement);
  const problem = part('add-error', HTMLElement);
  const submit = part('add-submit', HTMLButtonElement);
  /** @type {FolderSuggestion[]} */
  let folders = [];
  let active = -1;
  /** Number of times the dialog was opened; a response for an earlier opening is ignored. */
  let opening = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {string} message */
  const showProblem = (message) => {
    problem.textContent = message;
    field.setAttribute('aria-invalid', String(message !== ''));
  };

  /** @param {number} index */
  const activate = (index) => {
    active = index;
    for (const [at, option] of [...list.children].entries()) {
      option.setAttribute('aria-selected', String(at === index));
      if (at === index) option.scrollIntoView({ block: 'nearest' });
    }
    if (index >= 0) field.setAttribute('aria-activedescendant', `folder-${index}`);
    else field.removeAttribute('aria-activedescendant');
  };

  /** @param {FolderSuggestion[]} found @param {boolean} truncated @param {string} [chosen]  path to keep selected */
  const showFolders = (found, truncated, chosen) => {
    folders = found;
    const options = found.map((folder, index) =>
      h(
        'div',
        {
          role: 'option',
          id: `folder-${index}`,
          'aria-selected': 'false',
          onclick: () => accept(folder),
          // Otherwise the field would lose the focus before the click.
          onmousedown: (event) => event.preventDefault(),
        },
        h('span', { class: 'folder-name' }, `${folder.name}/`),
        folder.added && h('span', { class: 'folder-note' }, 'added'),
      ),
    );
    if (truncated) options.push(h('div', { class: 'folders-more', role: 'presentation' }, 'More: keep typing'));
    list.replaceChildren(...options);
    list.hidden = found.length === 0;
    list.scrollTop = 0;
    field.setAttribute('aria-expanded', String(found.length > 0));
    activate(found.findIndex(({ path }) => path === chosen));
  };

  const complete = async () => {
    const asked = field.value;
    const answer = await socket.request({ type: 'folder:complete', path: asked }).catch(() => undefined);
    // A response is used only if the path is still the requested one.
    if (answer?.type === 'folder:completions' && dialog.open && field.value === asked) {
      showFolders(answer.folders, answer.truncated, folders[active]?.path);
    }
  };

  /** @param {FolderSuggestion} folder */
  const accept = (folder) => {
    field.value = folder.path;
    showProblem('');
    field.focus();
    complete();
  };

  const add = async () => {
    clearTimeout(timer);
    submit.disabled = true;
    const asked = opening;
    const stillOpen = () => dialog.open && opening === asked;
    try {
      const answer = await socket.request({ type: 'project:add', path: field.value });
      if (answer.type !== 'project:added') return;
      if (stillOpen()) {
        dialog.close();
        onAdded(answer.project.id);
      } else {
        // The user has cancelled meanwhile, so the project is removed again.
        await socket.request({ type: 'project:remove', projectId: answer.project.id });
      }
    } catch (error) {
      if (!stillOpen()) return;
      showProblem(error instanceof Error ? error.message : String(error));
      field.focus();
    } finally {
      if (opening === asked) submit.disabled = false;
    }
  };

  field.addEventListener('input', () => {
    showProblem('');
    // Until the new response arrives, keep only the earlier suggestions that still match.
    const typed = field.value.toLowerCase();
    const matching = folders.filter(({ path }) => path.toLowerCase().startsWith(typed));
    showFolders(matching, false);
    clearTimeout(timer);
    timer = setTimeout(complete, TYPING_PAUSE_MS);
  });

  field.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const open = !list.hidden;
    if (event.key === 'ArrowDown' && open) activate((active + 1) % folders.length);
    else if (event.key === 'ArrowUp' && open) activate((active <= 0 ? folders.length : active) - 1);
    else if (event.key === 'Enter' && open && active >= 0) accept(folders[active]);
    else if (event.key === 'Tab' && !event.shiftKey && open && (active >= 0 || folders.length === 1)) {
      accept(folders[Math.max(active, 0)]);
    } else if (event.key === 'Escape' && open && active >= 0) activate(-1);
    else return;
    event.preventDefault();
  });

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (!submit.disabled) add();
  });
  part('add-cancel', HTMLButtonElement).addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => clearTimeout(timer));
  // A click on the backdrop has the dialog itself as target.
  dialog.addEventListener('mousedown', (event) => {
    if (event.target !== dialog || !isOutside(dialog, event)) return;
    event.preventDefault(); // Otherwise the focus, which returns to its previous element, would be lost again.
    dialog.close();
  });

  return {
    open: () => {
      opening += 1;
      submit.disabled = false;
      field.value = '';
      showProblem('');
      showFolders([], false);
      dialog.showModal();
      field.focus();
      complete();
    },
  };
}

/** @param {Element} element @param {MouseEvent} event */
function isOutside(element, { clientX, clientY }) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
