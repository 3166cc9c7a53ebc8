document.documentElement.dataset.live = 'yes';
